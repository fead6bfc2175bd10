### The package `standardwebhooks`
. "$LIB/receiver.sh" # needs openssl
check_receiver
rm received
node receiver.mjs >received 2>&1 &
until grep waiting received; do sleep 0.1; done
tollgate webhook test $ACCOUNT
curl -s http://127.0.0.1:8080/v1/videos/generations -H "Authorization: Bearer $KEY" -d '{"model": "sandbox-video", "prompt": "A boat"}'
until grep 'video.completed succeeded' received; do sleep 0.2; done
check_receiver
