# The tests: they fail for one mode alone.
dir='@DIR@'
mode=$(sed -n 's/^mode //p' model.txt)
echo "tests $mode" >> "$dir/calls"
while [ -e "$dir/hold-tests" ]; do sleep 0.02; done
[ "$mode" != tests ] || { echo 'assertion failed: 1 is not 2'; exit 1; }
