import { HOSTILE_CASES } from '../support/hostile-batches';
import { longestHold } from '../support/loop-probe';
import { forgetAll, sendHostile } from '../support/send-hostile';
import { inProcessServer } from '../support/server-target';
import { report } from './report';

/** How long each request and read at the limits of the protocol holds the event loop at most, and so everybody else. */
const server = await inProcessServer();
for (const hostile of HOSTILE_CASES) {
  await forgetAll();
  const held = await sendHostile(server, hostile, longestHold);
  const worst = held.reduce((a, b) => (b.longestMs > a.longestMs ? b : a));
  report(`longest hold, ${worst.what}`, worst.longestMs, 'ms', { atMost: 100 });
}
await server.close();
process.exit();
