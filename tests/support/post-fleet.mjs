/**
 * Fills a dashboard with a fleet of 40 connected agents and 300 sessions, and answers its commands until Ctrl-C:
 * `INTERLUDE_URL=http://127.0.0.1:4319 INTERLUDE_TOKEN=… node tests/support/post-fleet.mjs`
 */
import { loadTypescript } from '../../lib/launch/typescript.mjs';

const { connectFleet, writeFleet } = await loadTypescript('tests/support/fleet.ts');
const server = { url: process.env.INTERLUDE_URL ?? 'http://127.0.0.1:4319', token: process.env.INTERLUDE_TOKEN ?? '' };
const fleet = await writeFleet(server);
await connectFleet(server, fleet);
process.stdout.write(`${fleet.length} agents are connected. Press Ctrl-C to stop them.\n`);
