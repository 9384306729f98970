-- What each run said about its placebo, so that false alarms can be counted over all runs of a host.
create table placebo_result (
    id               integer primary key,
    run              integer not null references run (id),
    analysis         integer not null,
    cell             integer not null,
    workload         text not null,
    clients          integer not null,
    state            text not null,
    verdict          text not null,
    throughput_ratio real,
    throughput_low   real,
    throughput_high  real,
    cpu_ratio        real,
    cpu_low          real,
    cpu_high         real,
    blocks           integer not null,
    stopping         text not null,
    host             text not null,
    finished_unix_ms integer not null,
    written_by       text not null,
    unique (run, analysis, cell)
) strict;

create trigger placebo_result_no_update before update on placebo_result begin
    select raise(abort, 'records are never changed');
end;
create trigger placebo_result_no_delete before delete on placebo_result begin
    select raise(abort, 'records are never deleted');
end;
