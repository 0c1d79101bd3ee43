module mlc

go 1.19
