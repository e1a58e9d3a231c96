# Measures `model.txt`; how, follows from the mode that it has.
dir='@DIR@'
mode=$(sed -n 's/^mode //p' model.txt)
echo "sweep $mode" >> "$dir/calls"
while [ -e "$dir/hold-sweep" ]; do sleep 0.02; done
value=2
[ "$mode" = root ] && value=1
rows() { echo config_id,status,a; for id in 0 1 2; do echo "$id,ok,$value.$id"; done; }
case $mode in
exit1) rows > "$AGENTIC_RESULTS_CSV"; echo 'the sweep has lost its way'; exit 1 ;;
nocsv) echo 'nothing to say' ;;
unreadable) printf 'config_id,status,a\n0,ok,"1\n' > "$AGENTIC_RESULTS_CSV" ;;
hang) python3 -c "$(cat "$dir/tree.py")" "$dir-hang" wait ;;
fork) rows > "$AGENTIC_RESULTS_CSV"; python3 -c "$(cat "$dir/tree.py")" "$dir-fork" leave ;;
flood) rows > "$AGENTIC_RESULTS_CSV"; head -c @BYTES@ /dev/zero; echo; echo 'the end' ;;
nogit) rm -rf .git; rows > "$AGENTIC_RESULTS_CSV" ;;
own) rows > results.csv ;;
*) rows > "$AGENTIC_RESULTS_CSV" ;;
esac
