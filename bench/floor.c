/* The floor that the engine is measured against: the same statements in a bare loop over libpq, a session per thread.
   usage: floor <dsn> send|batch|receive|receive_send <threads> <messages>; prints messages per second. */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *dsn, *what;
static int left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *HEADERS = "{\"NServiceBus.MessageId\":\"7918fec3-6340-4dd0-81b8-b50801213560\","
    "\"NServiceBus.EnclosedMessageTypes\":\"Shop.Ping\",\"NServiceBus.ContentType\":\"application\\/json\"}";
static const char *BODY = "\\x7b226e223a317d";
static const char *SEND = "insert into \"%s\" (id, expires, headers, body) values "
    "(gen_random_uuid(), now() at time zone 'utc' + $3::bigint * interval '1 millisecond', $1, $2::bytea)";
static const char *BATCH = "insert into \"Floor\" (id, expires, headers, body) "
    "select gen_random_uuid(), null, $1, $2::bytea from generate_series(1, 100)";
static const char *RECEIVE = "delete from \"Floor\" where id = (select id from \"Floor\" order by seq limit 1 "
    "for update skip locked) returning id, seq, coalesce(expires <= now() at time zone 'utc', false), headers, body";

static void die(PGconn *c, const char *at) { fprintf(stderr, "%s: %s", at, PQerrorMessage(c)); exit(1); }

static int ran(PGconn *c, PGresult *r, const char *at) {
    ExecStatusType status = PQresultStatus(r);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) die(c, at);
    int rows = PQntuples(r);
    PQclear(r);
    return rows;
}

static int run(PGconn *c, const char *statement) { return ran(c, PQexec(c, statement), statement); }
static int prepared(PGconn *c, const char *name, int n) {
    const char *values[] = {HEADERS, BODY, NULL};
    return ran(c, PQexecPrepared(c, name, n, values, NULL, NULL, 1), name);
}

static int take(int n) {
    pthread_mutex_lock(&lock);
    int got = left > 0;
    left -= n;
    pthread_mutex_unlock(&lock);
    return got;
}

static void prepare(PGconn *c) {
    char send[512], onward[512];
    snprintf(send, sizeof send, SEND, "Floor");
    snprintf(onward, sizeof onward, SEND, "Onward");
    ran(c, PQprepare(c, "send", send, 0, NULL), "send");
    ran(c, PQprepare(c, "onward", onward, 0, NULL), "onward");
    ran(c, PQprepare(c, "batch", BATCH, 0, NULL), "batch");
    ran(c, PQprepare(c, "receive", RECEIVE, 0, NULL), "receive");
}

static void *work(void *given) {
    PGconn *c = given;
    if (!strcmp(what, "send")) while (take(1)) prepared(c, "send", 3);
    else if (!strcmp(what, "batch")) while (take(100)) prepared(c, "batch", 2);
    else while (take(1)) {
        run(c, "begin");
        int found = prepared(c, "receive", 0);
        if (found && !strcmp(what, "receive_send")) prepared(c, "onward", 3);
        run(c, "commit");
        if (!found) break;
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    dsn = argv[1], what = argv[2], left = atoi(argv[4]);
    int threads = atoi(argv[3]), messages = left;
    pthread_t thread[64];
    PGconn *session[64];
    for (int i = 0; i < threads; i++) {
        session[i] = PQconnectdb(dsn);
        if (PQstatus(session[i]) != CONNECTION_OK) die(session[i], "connect");
        prepare(session[i]);
    }
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, work, session[i]);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    for (int i = 0; i < threads; i++) PQfinish(session[i]);
    printf("%.1f\n", messages / ((to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9));
    return 0;
}
