module tollgate/clients

go 1.26.0
