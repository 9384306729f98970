create table run (
    id              integer primary key,
    name            text not null unique,
    plan            text not null,
    started_unix_ms integer not null,
    written_by      text not null
) strict;

create table run_state (
    id         integer primary key,
    run        integer not null references run (id),
    state      text not null,
    at_unix_ms integer not null
) strict;
create index run_state_run on run_state (run);

create table visit (
    id     integer primary key,
    run    integer not null references run (id),
    block  integer not null,
    cell   integer not null,
    slices integer not null,
    unique (run, block, cell)
) strict;

create table slice (
    id                integer primary key,
    run               integer not null references run (id),
    block             integer not null,
    cell              integer not null,
    round             integer not null,
    position          integer not null,
    server            integer not null,
    connection        integer not null,
    started_ns        integer not null,
    duration_ns       integer not null,
    operations        integer not null,
    failed            integer not null,
    rows              integer not null,
    server_cpu_ns     integer,
    run_queue_wait_ns integer,
    client_cpu_ns     integer not null,
    foreign_cpu_ns    integer,
    steal_ns          integer,
    latency_histogram blob not null,
    void              text,
    unique (run, block, cell, round, position)
) strict;

create table slice_error (
    slice         integer not null references slice (id),
    ordinal       integer not null,
    sqlstate      text not null,
    count         integer not null,
    first_message text not null,
    primary key (slice, ordinal)
) strict, without rowid;

create table fact (
    id     integer primary key,
    run    integer not null references run (id),
    server integer,
    block  integer,
    kind   text not null,
    value  text not null
) strict;
create index fact_run_kind on fact (run, kind);

create table finding (
    id       integer primary key,
    run      integer not null references run (id),
    kind     text not null,
    severity text not null,
    text     text not null
) strict;
create index finding_run on finding (run);

create trigger run_no_update before update on run begin
    select raise(abort, 'records are never changed');
end;
create trigger run_no_delete before delete on run begin
    select raise(abort, 'records are never deleted');
end;
create trigger run_state_no_update before update on run_state begin
    select raise(abort, 'records are never changed');
end;
create trigger run_state_no_delete before delete on run_state begin
    select raise(abort, 'records are never deleted');
end;
create trigger visit_no_update before update on visit begin
    select raise(abort, 'records are never changed');
end;
create trigger visit_no_delete before delete on visit begin
    select raise(abort, 'records are never deleted');
end;
create trigger slice_no_update before update on slice begin
    select raise(abort, 'records are never changed');
end;
create trigger slice_no_delete before delete on slice begin
    select raise(abort, 'records are never deleted');
end;
create trigger slice_error_no_update before update on slice_error begin
    select raise(abort, 'records are never changed');
end;
create trigger slice_error_no_delete before delete on slice_error begin
    select raise(abort, 'records are never deleted');
end;
create trigger fact_no_update before update on fact begin
    select raise(abort, 'records are never changed');
end;
create trigger fact_no_delete before delete on fact begin
    select raise(abort, 'records are never deleted');
end;
create trigger finding_no_update before update on finding begin
    select raise(abort, 'records are never changed');
end;
create trigger finding_no_delete before delete on finding begin
    select raise(abort, 'records are never deleted');
end;
