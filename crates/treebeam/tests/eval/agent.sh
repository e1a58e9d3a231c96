# Answers for every role. What it does follows from the idea's line `MODE: …` and from the round.
dir='@DIR@'
prompt=$(cat)
mode=$(printf '%s\n' "$prompt" | sed -n 's/.*MODE: \([a-z0-9_]*\).*/\1/p' | head -n 1)
echo "$TREEBEAM_ROLE $mode $TREEBEAM_ROUND" >> "$dir/calls"
while [ -e "$dir/hold-$TREEBEAM_ROLE" ]; do sleep 0.02; done

# The first round's change, or one of the second line.
first() { printf '%s\n' 'diff --git a/model.txt b/model.txt' '--- a/model.txt' '+++ b/model.txt' '@@ -1,2 +1,2 @@' '-mode root' "+mode $mode" ' round 0'; }
later() { printf '%s\n' 'diff --git a/model.txt b/model.txt' '--- a/model.txt' '+++ b/model.txt' '@@ -1,2 +1,2 @@' " mode $mode" "-round $((TREEBEAM_ROUND - 1))" "+round $TREEBEAM_ROUND"; }
added() { printf '%s\n' "diff --git a/$1 b/$1" 'new file mode 100644' '--- /dev/null' "+++ b/$1" '@@ -0,0 +1,1 @@' "+$2"; }

case $TREEBEAM_ROLE in
coordinator) echo "Mind the model, mode $mode." ;;
planner) printf 'PLAN: change the mode to %s.\nRISKS: none.\n' "$mode" ;;
coder)
    case $mode in
    second | never) [ "$TREEBEAM_ROUND" = 0 ] && first || later ;;
    badpatch) [ "$TREEBEAM_ROUND" = 0 ] && first | sed 's/mode root/mode other/' || first ;;
    hopeless) first | sed 's/mode root/mode other/' ;;
    prose) echo 'Here is the change that I propose:'; echo '```diff'; first; echo '```'; echo 'It changes **one** line.' ;;
    silent) echo 'I would rather not.' ;;
    nochange) first | sed 's/^+mode .*/+mode root/' ;;
    protected) [ "$TREEBEAM_ROUND" = 0 ] && { first; added tests/new_test.txt x; } || later ;;
    learns) [ "$TREEBEAM_ROUND" = 0 ] && { first; added tests/new_test.txt x; } || { printf '%s\n' 'diff --git a/tests/new_test.txt b/tests/new_test.txt' 'deleted file mode 100644' '--- a/tests/new_test.txt' '+++ /dev/null' '@@ -1,1 +0,0 @@' '-x'; } ;;
    artifact) [ "$TREEBEAM_ROUND" = 0 ] && { first; added results.csv 'config_id,status,a'; } || later ;;
    nogit) rm -rf .git; echo 'not asked for' > model.txt; first ;;
    fails) echo 'the agent has a bad day' >&2; exit 3 ;;
    *) first ;;
    esac ;;
reviewer)
    case $mode in
    never) printf 'VERDICT: REJECT\nISSUES:\n- the mode is never right\n' ;;
    second) [ "$TREEBEAM_ROUND" = 0 ] && printf 'VERDICT: REJECT\nISSUES:\n- the round must be told\n' || echo 'VERDICT: APPROVE' ;;
    *) printf 'VERDICT: APPROVE\nISSUES:\nNOTES: fine\n' ;;
    esac ;;
esac
