-- Where and when runs were measured, and what their cells are over all runs.
create table host (
    id           integer primary key,
    uid          text not null,
    class        text not null,
    kernel       text,
    microcode    text,
    from_unix_ms integer not null
) strict;

create table occasion (
    id                  integer primary key,
    run                 integer not null references run (id),
    host                integer not null references host (id),
    uid                 text not null,
    boot_id             text,
    measurement_version integer not null,
    at_unix_ms          integer not null
) strict;
create index occasion_run on occasion (run);

create table series (
    id      integer primary key,
    key     text not null unique,
    slug    text not null,
    content text not null
) strict;

create table cell_series (
    run    integer not null references run (id),
    cell   integer not null,
    series integer not null references series (id),
    primary key (run, cell)
) strict;

create trigger host_no_update before update on host begin
    select raise(abort, 'records are never changed');
end;
create trigger host_no_delete before delete on host begin
    select raise(abort, 'records are never deleted');
end;
create trigger occasion_no_update before update on occasion begin
    select raise(abort, 'records are never changed');
end;
create trigger occasion_no_delete before delete on occasion begin
    select raise(abort, 'records are never deleted');
end;
create trigger series_no_update before update on series begin
    select raise(abort, 'records are never changed');
end;
create trigger series_no_delete before delete on series begin
    select raise(abort, 'records are never deleted');
end;
create trigger cell_series_no_update before update on cell_series begin
    select raise(abort, 'records are never changed');
end;
create trigger cell_series_no_delete before delete on cell_series begin
    select raise(abort, 'records are never deleted');
end;
