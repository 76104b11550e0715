/* The minimal client of the lease queue: the product's own statements, prepared, over libpq in threads.
 * lease_floor DSN THREADS MESSAGES BATCH; CLAIM and FINISH hold the statements, FINISH_VALUES the values of the
 * second, one a line: @ids, @tokens, @results and @nulls are arrays of what was claimed, all else is as it stands. */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_VALUES 32
static int left, size, count;
static char *values[MOST_VALUES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static PGresult *ran(PGconn *c, PGresult *r, const char *at) {
    ExecStatusType status = PQresultStatus(r);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        fprintf(stderr, "%s: %s", at, PQerrorMessage(c));
        exit(1);
    }
    return r;
}

static int take(int n) {
    pthread_mutex_lock(&lock);
    int got = left > 0;
    left -= n;
    pthread_mutex_unlock(&lock);
    return got;
}

static char *array(PGresult *r, int column, const char *constant) {
    int rows = PQntuples(r);
    char *made = malloc(rows * 48 + 3), *at = made;
    *at++ = '{';
    for (int i = 0; i < rows; i++) at += sprintf(at, i ? ",%s" : "%s", constant ? constant : PQgetvalue(r, i, column));
    strcpy(at, "}");
    return made;
}

static int turn(PGconn *c) {
    PGresult *claimed = ran(c, PQexecPrepared(c, "claim", 0, NULL, NULL, NULL, 0), "claim");
    int rows = PQntuples(claimed);
    if (rows) {
        const char *given[MOST_VALUES];
        char *made[] = {array(claimed, 0, NULL), array(claimed, 1, NULL), array(claimed, 0, "success"), array(claimed, 0, "NULL")};
        for (int i = 0; i < count; i++) {
            given[i] = values[i];
            if (!strcmp(values[i], "@ids")) given[i] = made[0];
            if (!strcmp(values[i], "@tokens")) given[i] = made[1];
            if (!strcmp(values[i], "@results")) given[i] = made[2];
            if (!strcmp(values[i], "@nulls")) given[i] = made[3];
        }
        PQclear(ran(c, PQexecPrepared(c, "finish", count, given, NULL, NULL, 0), "finish"));
        for (int i = 0; i < 4; i++) free(made[i]);
    }
    PQclear(claimed);
    return rows;
}

static void *work(void *given) {
    while (take(size) && turn(given));
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int threads = atoi(argv[2]), messages = atoi(argv[3]);
    left = messages, size = atoi(argv[4]);
    for (char *line = strtok(strdup(getenv("FINISH_VALUES")), "\n"); line; line = strtok(NULL, "\n")) values[count++] = line;
    pthread_t thread[64];
    PGconn *session[64];
    for (int i = 0; i < threads; i++) {
        session[i] = PQconnectdb(argv[1]);
        PQclear(ran(session[i], PQprepare(session[i], "claim", getenv("CLAIM"), 0, NULL), "claim"));
        PQclear(ran(session[i], PQprepare(session[i], "finish", getenv("FINISH"), 0, NULL), "finish"));
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
