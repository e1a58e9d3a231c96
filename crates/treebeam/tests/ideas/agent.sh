# Writes down what it is asked, waits while somebody holds it, and says what was laid out for this call.
dir='@DIR@'
echo call >> "$dir/calls"
number=$(wc -l < "$dir/calls" | tr -d ' ')
cat > "$dir/prompt-$number"
echo 'edited' >> model.py
touch stray
while test -e "$dir/hold"; do sleep 0.01; done
if test -e "$dir/reply-$number"; then cat "$dir/reply-$number"; else cat "$dir/reply"; fi
