-- 100 rows by primary key: what `deltabench selfbench client` compares its own client with.
-- Same SQL, same key distribution (uniform) and same parameter type (bigint) as the driver's own.

sysbench.cmdline.options = {
   rows = {"Rows of the table sbtest1", 100000}
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   statement = connection:prepare("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?")
   first = statement:bind_create(sysbench.sql.type.INT)
   last = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(first, last)
end

function thread_done()
   statement:close()
   connection:disconnect()
end

function event()
   local start = sysbench.rand.uniform(1, sysbench.opt.rows - 99)
   first:set(start)
   last:set(start + 99)
   statement:execute()
end
