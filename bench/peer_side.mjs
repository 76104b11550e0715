// A peer from npm, as peer_side.py: prints jobs per second, from the first job handled to the last.
import { createRequire } from "node:module";

const [, , name, dsn, jobsText, from] = process.argv;
const jobs = Number(jobsText);
const require = createRequire(`${from}/`);
const AT_ONCE = 8;

let seen = 0, first = 0, late = 0;
function count(handled = 1) {
  if (!seen) { first = performance.now(); late = handled; }
  seen += handled;
  if (seen >= jobs) {
    console.log(((seen - late) / (performance.now() - first)) * 1000);
    process.exit(0);
  }
}

// a batch: jobs fetched ahead into its local queue, and completed together as they end
async function graphileWorker(batchSize) {
  const { run, makeWorkerUtils, Logger } = require("graphile-worker");
  const quiet = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString: dsn });
  await utils.migrate();
  await utils.withPgClient((client) =>
    client.query("select graphile_worker.add_job('ping', json_build_object('n', n)) from generate_series(1, $1) n", [jobs]));
  const worker = { connectionString: dsn, concurrentJobs: AT_ONCE };
  if (batchSize > 1) Object.assign(worker, { localQueue: { size: batchSize }, completeJobBatchDelay: 0, failJobBatchDelay: 0 });
  await run({ preset: { worker }, logger: quiet, noHandleSignals: true, taskList: { ping: async () => count() } });
}

async function pgBoss(batchSize) { // its own work() polls, one batch each half second: a loop is what it can do
  const exported = require("pg-boss");
  const PgBoss = exported.PgBoss ?? exported.default ?? exported;
  const boss = new PgBoss(dsn);
  boss.on("error", (error) => { console.error(error); process.exit(1); });
  await boss.start();
  await boss.createQueue("ping");
  for (let start = 0; start < jobs; start += 1000) {
    await boss.insert(Array.from({ length: Math.min(1000, jobs - start) }, (_, n) => ({ name: "ping", data: { n } })));
  }
  for (let n = 0; n < AT_ONCE; n++) {
    (async () => {
      for (;;) {
        const taken = await boss.fetch("ping", { batchSize });
        if (taken.length) {
          await boss.complete("ping", taken.map((job) => job.id));
          count(taken.length);
        }
      }
    })();
  }
}

const peers = {
  graphile_worker: () => graphileWorker(1), graphile_worker_batch: () => graphileWorker(100),
  pg_boss: () => pgBoss(1), pg_boss_batch: () => pgBoss(100),
};
await peers[name]();
