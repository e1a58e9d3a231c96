# Answers for both roles, and writes down each call. What comes of an idea stands in its title.
me="$TREEBEAM_ROLE ${TREEBEAM_EVAL:-$TREEBEAM_NODE} $TREEBEAM_ROUND"
echo "begin $me" >> "$1/calls-$TREEBEAM_RUN"
prompt=$(cat)
score=$(cat model.txt)
case $TREEBEAM_ROLE in
ideas)
    wanted=$2
    while [ "$wanted" -gt 0 ]; do
        gain=$(((wanted * 37 + score * 11) % 17 - 5))
        printf 'IDEA: add %s in way %s of node %s\nRATIONALE: to see\nREQUIRED_CHANGES: model.txt\n\n' "$gain" "$wanted" "$TREEBEAM_NODE"
        wanted=$((wanted - 1))
    done ;;
coder)
    gain=$(printf '%s\n' "$prompt" | sed -n 's/^IDEA: add \([-0-9]*\) in .*/\1/p' | head -n 1)
    printf '%s\n' '--- a/model.txt' '+++ b/model.txt' '@@ -1 +1 @@' "-$score" "+$((score + gain))" ;;
esac
echo "end $me" >> "$1/calls-$TREEBEAM_RUN"
