import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { SCALED_TEST_MS, scaled } from '../support/scale';
import { judge, pause, setUp, untilUnderLoad } from '../support/scene';

/**
 * Power cuts at random moments under load: the real server, runners that are processes of their own with real outboxes,
 * and a dashboard that stays open and resumes. Afterwards everything is there, once and in order, wherever one looks.
 */
const KILLS = { server: scaled(4, 20), runner: scaled(8, 20), both: scaled(2, 10) };

/** Each scene has new agents: its audit reads back all that they have written. */
const SCENES = Array.from({ length: scaled(1, 15) }, (_, at) => at + 1);

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

describe.each(SCENES)('kill -9 under load, scene %i,', (scene) => {
  test(
    'keeps each record once when the server is killed',
    async () => {
      const it = await setUp(`server ${scene}`, server, [`north-${scene}`, `south-${scene}`]);
      for (let kills = 0; kills < KILLS.server; kills += 1) {
        await untilUnderLoad(it);
        await pause(it.random.between(0, 150));
        await server.kill9();
        await server.restart();
        for (const runner of it.runners) runner.kick();
      }
      await judge(it);
      expect(it.watcher.connections).toBeGreaterThan(KILLS.server);
    },
    SCALED_TEST_MS,
  );

  test(
    'keeps each record once when runners are killed',
    async () => {
      const it = await setUp(`runners ${scene}`, server, [`red-${scene}`, `green-${scene}`]);
      for (let kills = 0; kills < KILLS.runner; kills += 1) {
        const runner = it.random.pick(it.runners);
        await runner.progress();
        await pause(it.random.between(0, 60));
        await runner.kill9();
      }
      await judge(it);
    },
    SCALED_TEST_MS,
  );

  test(
    'keeps each record once when server and runners are killed at once',
    async () => {
      const it = await setUp(`both ${scene}`, server, [`spring-${scene}`, `autumn-${scene}`]);
      for (let kills = 0; kills < KILLS.both; kills += 1) {
        await untilUnderLoad(it);
        await pause(it.random.between(0, 100));
        const victim = it.random.pick(it.runners);
        const [first, second] = it.random.next() < 0.5 ? [server, victim] : [victim, server];
        const firstGone = first.kill9();
        await pause(it.random.between(0, 10));
        await Promise.all([firstGone, second.kill9()]);
        await server.restart();
        for (const runner of it.runners) runner.kick();
      }
      await judge(it);
    },
    SCALED_TEST_MS,
  );
});
