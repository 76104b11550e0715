-- Run by the image's entrypoint, after the role is made: the tables belong to the role of the programs.
\connect pgqueue
set role pgqueue;
\ir ../lease-queue.sql
