import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { pause, startScene, untilUnderLoad, verifyDelivery } from '../support/scene';
import { scaled } from '../support/timeouts';

/**
 * SIGKILL at random moments under load: the real server, runner processes with real outboxes, and a dashboard that
 * stays open and resumes. Afterwards everything is present once and in order, everywhere.
 */
const KILLS = { server: scaled(4, 20), runner: scaled(8, 20), both: scaled(2, 10) };

/** Each scene uses new agents, because its audit reads back everything they wrote. */
const SCENES = Array.from({ length: scaled(1, 15) }, (_, index) => index + 1);

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

describe.each(SCENES)('kill -9 under load, scene %i,', (serial) => {
  test('keeps each record once when the server is killed', async () => {
    const scene = await startScene(`server ${serial}`, server, [`north-${serial}`, `south-${serial}`]);
    for (let kills = 0; kills < KILLS.server; kills += 1) {
      await untilUnderLoad(scene);
      await pause(scene.random.between(0, 150));
      await server.kill9();
      await server.restart();
      for (const runner of scene.runners) runner.kick();
    }
    await verifyDelivery(scene);
    expect(scene.watcher.connections).toBeGreaterThan(KILLS.server);
  });

  test('keeps each record once when runners are killed', async () => {
    const scene = await startScene(`runners ${serial}`, server, [`red-${serial}`, `green-${serial}`]);
    for (let kills = 0; kills < KILLS.runner; kills += 1) {
      const runner = scene.random.pick(scene.runners);
      await runner.progress();
      await pause(scene.random.between(0, 60));
      await runner.kill9();
    }
    await verifyDelivery(scene);
  });

  test('keeps each record once when server and runners are killed at once', async () => {
    const scene = await startScene(`both ${serial}`, server, [`spring-${serial}`, `autumn-${serial}`]);
    for (let kills = 0; kills < KILLS.both; kills += 1) {
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
    await verifyDelivery(scene);
  });
});
