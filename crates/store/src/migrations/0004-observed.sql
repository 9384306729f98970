-- What was counted beside the slices, the series of the host, what happened at a moment, and withdrawals.
create table visit_counters (
    id         integer primary key,
    run        integer not null references run (id),
    block      integer not null,
    cell       integer not null,
    server     integer not null,
    operations integer not null,
    counters   text not null,
    unique (run, block, cell, server)
) strict;

create table sample (
    id      integer primary key,
    run     integer not null references run (id),
    at_ns   integer not null,
    over_ns integer not null,
    series  text not null
) strict;
create index sample_run on sample (run, at_ns);

create table mark (
    id     integer primary key,
    run    integer not null references run (id),
    at_ns  integer not null,
    server integer,
    kind   text not null,
    text   text not null
) strict;
-- An index of its own: two NULLs of a unique constraint are never equal, and a mark of the run has no server.
create unique index mark_once on mark (run, at_ns, coalesce(server, -1), kind, text);

create table invalidation (
    id         integer primary key,
    run        integer not null references run (id),
    cell       integer,
    reason     text not null,
    at_unix_ms integer not null
) strict;
create index invalidation_run on invalidation (run);

create trigger visit_counters_no_update before update on visit_counters begin
    select raise(abort, 'records are never changed');
end;
create trigger visit_counters_no_delete before delete on visit_counters begin
    select raise(abort, 'records are never deleted');
end;
create trigger sample_no_update before update on sample begin
    select raise(abort, 'records are never changed');
end;
create trigger sample_no_delete before delete on sample begin
    select raise(abort, 'records are never deleted');
end;
create trigger mark_no_update before update on mark begin
    select raise(abort, 'records are never changed');
end;
create trigger mark_no_delete before delete on mark begin
    select raise(abort, 'records are never deleted');
end;
create trigger invalidation_no_update before update on invalidation begin
    select raise(abort, 'records are never changed');
end;
create trigger invalidation_no_delete before delete on invalidation begin
    select raise(abort, 'records are never deleted');
end;
