import { afterAll, beforeAll, test } from 'vitest';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { judge, setUpBeside, untilUnderLoad } from '../support/scene';

/** Nobody means to do it, but a second `npm start` in another terminal is easily typed. */
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

test('two servers on one data directory take from both sides, and either shows all of it', async () => {
  const scenes = await setUpBeside('two servers', [first, second], ['left', 'right']);
  for (const scene of scenes) for (let round = 0; round < 5; round += 1) await untilUnderLoad(scene);
  await judge(...scenes);
});
