import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FaultServer } from '../support/fault-server';
import { seededRandom } from '../support/random';
import { tempDir } from '../support/temp-dir';
import { scaled } from '../support/timeouts';
import { startBundled } from '../support/typescript-programs';

const KILLS = scaled(4, 300);
const RECORDS = 2_000 * KILLS;

const random = seededRandom('outbox-kill');

test('keeps each record once when the runner is killed at random moments', async () => {
  const server = await FaultServer.start();
  onTestFinished(() => server.close());
  const file = join(await tempDir(), 'outbox.db');
  let killed = 0;
  for (;;) {
    const end = await runOnce(file, server, killed < KILLS);
    if (end === 0) break;
    expect(end, 'it ends by the kill or because all is done').toBe('SIGKILL');
    killed += 1;
  }
  expect(server.ledger.messages).toEqual(Array.from({ length: RECORDS }, (_, index) => String(index + 1)));
  expect(server.ledger.lost).toBe(0);
  expect(killed).toBe(KILLS);
});

/** One run of the runner, killed at some moment after its records started to arrive. */
function runOnce(file: string, server: FaultServer, toBeKilled: boolean): Promise<number | string | null> {
  const child = startBundled('tests/support/outbox-writer.ts', [file, server.url, String(RECORDS)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<number | string | null>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? code));
  });
  if (toBeKilled) {
    const arrived = server.requests.length;
    void server
      .until(() => server.requests.length > arrived)
      .then(() => {
        setTimeout(() => child.kill('SIGKILL'), random.between(0, 60));
      });
  }
  return ended;
}
