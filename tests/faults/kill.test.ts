import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { judge, pause, setUp, untilUnderLoad } from '../support/scene';

/**
 * Power cuts at random moments under load: the real server, runners that are processes of their own with real outboxes,
 * and a dashboard that stays open and resumes. Afterwards everything is there, once and in order, wherever one looks.
 */
const KILLS = 20;

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

test('a server killed twenty times under load loses nothing and doubles nothing', async () => {
  const scene = await setUp('server', server, ['north', 'south', 'west']);
  for (let kills = 0; kills < KILLS; kills += 1) {
    await untilUnderLoad(scene);
    await pause(scene.random.between(0, 150));
    await server.kill9();
    await server.restart();
    for (const runner of scene.runners) runner.kick();
  }
  await judge(scene);
  expect(scene.watcher.connections).toBeGreaterThan(KILLS);
});

test('runners killed twenty times under load lose nothing and double nothing', async () => {
  const scene = await setUp('runners', server, ['red', 'green', 'blue']);
  for (let kills = 0; kills < KILLS; kills += 1) {
    const runner = scene.random.pick(scene.runners);
    await runner.progress();
    await pause(scene.random.between(0, 60));
    await runner.kill9();
  }
  await judge(scene);
});

test('server and runners killed at once lose nothing and double nothing', async () => {
  const scene = await setUp('both', server, ['spring', 'autumn']);
  for (let kills = 0; kills < 4; kills += 1) {
    await untilUnderLoad(scene);
    await pause(scene.random.between(0, 100));
    const victim = scene.random.pick(scene.runners);
    const [first, second] = scene.random.next() < 0.5 ? [server, victim] : [victim, server];
    const firstGone = first.kill9();
    await pause(scene.random.between(0, 10));
    await Promise.all([firstGone, second.kill9()]);
    await server.restart();
    for (const runner of scene.runners) runner.kick();
  }
  await judge(scene);
});
