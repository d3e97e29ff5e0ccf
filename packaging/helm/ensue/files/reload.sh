# The kubelet swaps the link ..data when a mounted Secret has changed.
version() { readlink "$CERTIFICATES/..data" || cat "$CERTIFICATES/tls.crt"; }
known=$(version)
trap 'exit 0' TERM
while true; do
  sleep "$SECONDS_BETWEEN" & wait $!
  now=$(version)
  [ "$now" != "$known" ] || continue
  for process in /proc/[0-9]*; do
    read -r name 2>/dev/null < "$process/comm" || continue
    if [ "$name" = ensue ] && kill -HUP "${process#/proc/}"; then
      known=$now
      echo "the certificate has changed: SIGHUP sent to process ${process#/proc/}"
    fi
  done
done
