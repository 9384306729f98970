-- One row changed by primary key: what `deltabench selfbench client` compares its own client with.
-- Same SQL, same key distribution (uniform) and same parameter type (bigint) as the driver's own.

sysbench.cmdline.options = {
   rows = {"Rows of the table sbtest1", 100000}
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   statement = connection:prepare("UPDATE sbtest1 SET k=k+1 WHERE id=?")
   first = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(first)
end

function thread_done()
   statement:close()
   connection:disconnect()
end

function event()
   first:set(sysbench.rand.uniform(1, sysbench.opt.rows))
   statement:execute()
end
