/* The floor that the engine is measured against: the same statements in a bare loop over libpq, a session per thread.
   A batch is an insert of a hundred rows, as whoever has no COPY at hand sends one.
   usage: floor <dsn> send|batch|receive|receive_send|receive_batch <threads> <messages>; prints messages per second. */
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
    "\"NServiceBus.MessageIntent\":\"Send\",\"NServiceBus.ConversationId\":\"4f0a2f5a-51a8-4f0e-9d3c-1d1f7e0c6f11\","
    "\"NServiceBus.CorrelationId\":\"7918fec3-6340-4dd0-81b8-b50801213560\","
    "\"NServiceBus.ReplyToAddress\":\"\\\"public\\\".\\\"Engine\\\"\",\"NServiceBus.OriginatingMachine\":\"bench\","
    "\"NServiceBus.OriginatingEndpoint\":\"Engine\","
    "\"$.diagnostics.originating.hostid\":\"0123456789abcdef0123456789abcdef\","
    "\"NServiceBus.TimeSent\":\"2026-11-20 12:00:00:000000 Z\",\"NServiceBus.ContentType\":\"application\\/json\","
    "\"NServiceBus.EnclosedMessageTypes\":\"Shop.Ping\"}";
static const char *BODY = "\\x7b226e223a317d";
static const char *SEND = "insert into \"%s\" (id, expires, headers, body) values "
    "(gen_random_uuid(), now() at time zone 'utc' + $3::bigint * interval '1 millisecond', $1, $2::bytea)";
static const char *BATCH = "insert into \"Floor\" (id, expires, headers, body) "
    "select id, now() at time zone 'utc' + ttbr_ms * interval '1 millisecond', headers, body "
    "from unnest($1::uuid[], $2::bigint[], $3::text[], $4::bytea[]) "
    "with ordinality as message (id, ttbr_ms, headers, body, place) order by place";
static const char *RECEIVE = "delete from \"Floor\" where id = (select id from \"Floor\" order by seq limit 1 "
    "for update skip locked) returning id, seq, coalesce(expires <= now() at time zone 'utc', false), headers, body";
static const char *RECEIVE_BATCH = "delete from \"Floor\" where id = any(array(select id from \"Floor\" order by seq "
    "limit 50 for update skip locked)) "
    "returning id, seq, coalesce(expires <= now() at time zone 'utc', false), headers, body";
static char *ttbrs, *headers, *bodies;

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

/* An array of a hundred times the same text, as the server reads it. */
static char *hundred(const char *text, int quoted) {
    char *made = malloc(100 * (2 * strlen(text) + 4) + 3), *at = made;
    for (int i = 0; i < 100; i++) {
        *at++ = i ? ',' : '{';
        if (quoted) *at++ = '"';
        for (const char *c = text; *c; c++) {
            if (quoted && (*c == '"' || *c == '\\')) *at++ = '\\';
            *at++ = *c;
        }
        if (quoted) *at++ = '"';
    }
    strcpy(at, "}");
    return made;
}

static void batch(PGconn *c, unsigned *seed) {
    char ids[100 * 37 + 2], *at = ids;
    for (int i = 0; i < 100; i++) {
        *at++ = i ? ',' : '{';
        for (int word = 0; word < 4; word++) at += sprintf(at, "%08x", (unsigned)rand_r(seed) << 1 ^ rand_r(seed));
    }
    strcpy(at, "}");
    const char *values[] = {ids, ttbrs, headers, bodies};
    ran(c, PQexecPrepared(c, "batch", 4, values, NULL, NULL, 1), "batch");
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
    ran(c, PQprepare(c, "receive_batch", RECEIVE_BATCH, 0, NULL), "receive_batch");
}

static void *work(void *given) {
    PGconn *c = given;
    unsigned seed = time(NULL) ^ PQbackendPID(c) * 2654435761u;
    if (!strcmp(what, "send")) while (take(1)) prepared(c, "send", 3);
    else if (!strcmp(what, "batch")) while (take(100)) batch(c, &seed);
    else if (!strcmp(what, "receive_batch")) for (int found = 1; found && take(50);) {
        run(c, "begin");
        found = prepared(c, "receive_batch", 0);
        run(c, "commit");
    } else while (take(1)) {
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
    ttbrs = hundred("NULL", 0), headers = hundred(HEADERS, 1), bodies = hundred(BODY, 1);
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
