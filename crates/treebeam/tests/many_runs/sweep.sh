# Measures `model.txt`, and writes down that it did. Some take a moment, some fail.
place=${AGENTIC_OUTPUT_DIR#*/runs/}
log="$1/calls-${place%%/*}"
eval=${place%/*}
me="sweep ${eval##*/} ${place##*/}"
echo "begin $me" >> "$log"
score=$(cat model.txt)
[ $((score % 3)) = 0 ] && sleep 0.1
{
    echo config_id,status,a
    for id in 0 1 2; do echo "$id,ok,$((score + id))"; done
} > "$AGENTIC_RESULTS_CSV"
echo "end $me" >> "$log"
[ $((score % 7)) != 4 ]
