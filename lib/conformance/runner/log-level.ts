import { fieldsOf } from '@interlude/protocol/fields';
import { agree, type Check, hold } from '../check';
import { everyMsOf, type RunnerStage } from './runner-stage';

const WHY = '7, The log level of a runner';

const set = (stage: RunnerStage, level: string | null, requestId: string, ttlSeconds?: number) =>
  stage.fake.commands.ask('log-level.set', null, {
    level,
    by: 'conformance',
    requestId,
    ...(ttlSeconds ? { ttlSeconds } : {}),
  });

async function says(stage: RunnerStage, level: unknown): Promise<void> {
  const withinMs = (everyMsOf(stage.status) ?? 0) + stage.patience.withinMs;
  const todo = 'Say logLevel in the status record, soon after it changed.';
  const isSaid = () => stage.status.logLevel === level;
  await stage.until(`a status record with logLevel ${level}`, isSaid, todo, {
    withinMs,
    seen: () => stage.status.logLevel,
  });
}

export const LOG_LEVEL: readonly Check<RunnerStage>[] = [
  {
    group: 'log level',
    name: 'a level is set, said in the status record, and goes back by itself when its time is over',
    why: WHY,
    async run(stage) {
      await stage.takes('log-level.set');
      const base = stage.status.logLevel;
      hold(typeof base === 'string', 'logLevel in the status record', base, 'Say which level you write.');
      await stage.acked(set(stage, 'error', 'wish-1', 1), ['done']);
      await says(stage, 'error');
      await says(stage, base);
    },
  },
  {
    group: 'log level',
    name: 'the same wish again is acknowledged, and changes nothing any more',
    why: WHY,
    async run(stage) {
      await stage.takes('log-level.set');
      const base = stage.status.logLevel;
      await stage.acked(set(stage, 'error', 'wish-2', 1), ['done']);
      await says(stage, 'error');
      await says(stage, base);
      await stage.acked(set(stage, 'error', 'wish-2', 60), ['done']);
      await stage.obey('say something, so that there is another status record');
      await stage.obey('background 0.1');
      agree('the level', stage.status.logLevel, base, 'Remember the last requestId that you have done.');
    },
  },
  {
    group: 'log level',
    name: 'a change of the level is a line of the log, whatever the level',
    why: WHY,
    async run(stage) {
      await stage.takes('log-level.set');
      await stage.acked(set(stage, 'fatal', 'wish-3'), ['done']);
      await stage.acked(set(stage, null, 'wish-4'), ['done']);
      const isTold = () =>
        stage.fake.ledger
          .logs()
          .some(({ marker }) => fieldsOf(marker).kind === 'level' && fieldsOf(marker).level === 'fatal');
      const todo = 'Write a log record with marker {"kind":"level","level","previous","by"}.';
      await stage.until('a log record with a marker', isTold, todo);
    },
  },
];
