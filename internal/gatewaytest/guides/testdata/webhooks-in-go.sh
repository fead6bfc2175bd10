### ## If it does not work
. "$LIB/receiver.sh" # needs openssl
check_receiver
