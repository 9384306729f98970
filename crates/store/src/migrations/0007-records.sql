-- Format 2: whole pieces of work are records of a kind that the store need not know. Those of format 1 were the
-- steps of the Insert Benchmark; they are kept as they were, in the same order.
create table record (
    id      integer primary key,
    run     integer not null references run (id),
    kind    text not null,
    block   integer not null,
    cell    integer not null,
    server  integer not null,
    void    text,
    payload text not null
) strict;
insert into record (id, run, kind, block, cell, server, void, payload)
    select id, run, 'insert-step', block, cell, server, record ->> '$.void', record from step order by id;
drop table step;
create index record_run on record (run, kind, block, server);

create trigger record_no_update before update on record begin
    select raise(abort, 'records are never changed');
end;
create trigger record_no_delete before delete on record begin
    select raise(abort, 'records are never deleted');
end;
pragma user_version = 2;
