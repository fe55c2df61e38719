import { AppError } from '@interlude/protocol/errors';
import type { WriteJob } from '@/db/writes';
import { temporaryDatabase } from '../support/database';
import { median, note, report } from './report';

/**
 * Cost of rejected writes in a commit group: groups of small writes with every tenth rejected after its first
 * statements, compared with groups without rejections. Both alternate, so that other load affects both.
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

note('rejections: group without rejections', median(times.none), 'ms');
note('rejections: group with a tenth rejected', median(times.tenth), 'ms');
report('rejections: cost of a tenth rejected', median(times.tenth) / median(times.none), '×', { atMost: 1.2 });

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
