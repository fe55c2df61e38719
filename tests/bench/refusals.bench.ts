import { AppError } from '@interlude/protocol/errors';
import type { WriteJob } from '@/db/writes';
import { temporaryDatabase } from '../support/database';
import { note, report } from './report';

/**
 * What refusals cost the requests they are committed with: groups of small writes of which every tenth is refused after
 * its first statements, beside groups of which none is. The two take turns, so that whatever else the machine does meets
 * both.
 */
const JOBS_OF_A_GROUP = 64;
const WARM_UP_GROUPS = 20;
const MEASURED_GROUPS = 150;

const database = await temporaryDatabase();
const times = { none: [] as number[], tenth: [] as number[] };
for (let round = 0; round < WARM_UP_GROUPS + MEASURED_GROUPS; round += 1) {
  const order = round % 2 === 0 ? (['none', 'tenth'] as const) : (['tenth', 'none'] as const);
  for (const which of order) {
    const start = performance.now();
    await runGroup(which === 'tenth');
    if (round >= WARM_UP_GROUPS) times[which].push(performance.now() - start);
  }
}

const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? 0;
note('refusals: a group of which none is refused', median(times.none), 'ms');
note('refusals: a group of which a tenth is', median(times.tenth), 'ms');
report('refusals: what a tenth of them costs', median(times.tenth) / median(times.none), '×', { atMost: 1.2 });

await database.dispose();

async function runGroup(withRefusals: boolean): Promise<void> {
  const jobs = Array.from({ length: JOBS_OF_A_GROUP }, (_, index) => writeLine(withRefusals && index % 10 === 9));
  const settled = await Promise.allSettled(jobs.map((job) => database.writes.run(job)));
  const refused = settled.filter(({ status }) => status === 'rejected').length;
  if (refused !== (withRefusals ? Math.floor(JOBS_OF_A_GROUP / 10) : 0)) throw new Error(`refused ${refused}`);
}

function writeLine(isRefused: boolean): WriteJob<void> {
  return async (transaction) => {
    const { rows } = await transaction.execute(
      `INSERT INTO counter (id, position) VALUES (1, 1)
       ON CONFLICT (id) DO UPDATE SET position = position + 1 RETURNING position`,
    );
    await transaction.execute({
      sql: `INSERT INTO log_lines (position, agent_id, occurred_at, received_at, level, component, message)
            VALUES (?, 'agent-1', 0, 0, 'info', 'bench', ?)`,
      args: [rows[0]?.position ?? 0, 'word '.repeat(60)],
    });
    if (isRefused) throw new AppError('conflict', 'The task has ended: there is nothing to stop.');
  };
}
