module decoder

go 1.24
