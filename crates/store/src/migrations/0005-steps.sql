-- What the scripts of a pgbench workload came to in a slice, and the steps of the Insert Benchmark.
alter table slice add column scripts text;

create table step (
    id     integer primary key,
    run    integer not null references run (id),
    block  integer not null,
    cell   integer not null,
    server integer not null,
    record text not null
) strict;
create index step_run on step (run, block, server);

create trigger step_no_update before update on step begin
    select raise(abort, 'records are never changed');
end;
create trigger step_no_delete before delete on step begin
    select raise(abort, 'records are never deleted');
end;
