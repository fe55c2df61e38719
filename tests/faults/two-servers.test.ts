import { afterAll, beforeAll, test } from 'vitest';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { startScenes, untilUnderLoad, verifyDelivery } from '../support/scene';
import { scaled } from '../support/timeouts';

/** Two servers on one data directory, for example by an accidental second `npm start`. */
const ROUNDS = scaled(10, 200);

let first: LiveServer;
let second: LiveServer;
beforeAll(async () => {
  first = await startLiveServer();
  second = await startLiveServer({ dataDir: first.dataDir, token: first.token });
});
afterAll(async () => {
  await second.stop();
  await first.stop();
});

test('two servers on one data directory both ingest, and each shows everything', async () => {
  const scenes = await startScenes('two servers', [first, second], ['left', 'right']);
  for (let round = 0; round < ROUNDS; round += 1) await Promise.all(scenes.map(untilUnderLoad));
  await verifyDelivery(...scenes);
});
