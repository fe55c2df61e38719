import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { MAX_EVERY_MS } from '@interlude/protocol/limits';
import { PROTOCOL_VERSION } from '@interlude/protocol/version';
import { agree, type Check, hold, NotDone } from '../check';
import { everyMsOf, type RunnerStage } from './runner-stage';

const WHY = '3, What status may say, and 7, Commands, 9';
export const LIVENESS: readonly Check<RunnerStage>[] = [
  {
    group: 'liveness',
    name: 'a status record says which kind of agent and which runner speaks, and how often it will',
    why: WHY,
    async run(stage) {
      await stage.running();
      const { kind, runner, versions } = stage.status;
      const { id, startedAt } = fieldsOf(runner) as Fields;
      hold(textOf(kind) !== null, 'a kind', kind, 'Say what kind of agent it is.');
      agree('versions.protocol', fieldsOf(versions).protocol, PROTOCOL_VERSION, 'Say which protocol you speak.');
      const stream = stage.fake.commands.streamed.at(-1);
      const same = { id: stream?.runner, startedAt: stream?.startedAt };
      agree('its runner', { id, startedAt }, same, 'Name yourself there as on the stream of commands.');
      const everyMs = everyMsOf(stage.status);
      const isPromise = everyMs !== null && Number.isInteger(everyMs) && everyMs >= 1 && everyMs <= MAX_EVERY_MS;
      hold(isPromise, 'everyMs, at most ten minutes', everyMs, 'Say within how long the next record comes.');
    },
  },
  {
    group: 'liveness',
    name: 'it reports as often as it promised',
    why: WHY,
    async run(stage) {
      await stage.running();
      const everyMs = everyMsOf(stage.status) ?? 0;
      const count = () => stage.fake.ledger.statuses().length;
      const before = count();
      const withinMs = everyMs + stage.patience.withinMs;
      const todo = 'Send a status record every everyMs, whether or not anything has changed.';
      await stage.until('the next status record', () => count() > before, todo, { withinMs });
    },
  },
  {
    group: 'liveness',
    name: 'a status record that speaks of the open turn names the one that its events have opened',
    why: WHY,
    async run(stage) {
      if (!('openTurnId' in stage.status)) throw new NotDone('its status record does not speak of the open turn');
      const { id } = await stage.begun('hang');
      const withinMs = (everyMsOf(stage.status) ?? 0) + stage.patience.withinMs;
      const seen = () => stage.status.openTurnId;
      const names = (turn: unknown) => () => stage.status.openTurnId === turn;
      await stage.until(`openTurnId ${id}`, names(id), 'Report within everyMs that a turn is open.', {
        withinMs,
        seen,
      });
      await stage.acked(stage.fake.commands.ask('interrupt', stage.sessionId, { turnId: id }), ['done', 'failed']);
      // One that can't be interrupted ends with its runner.
      if (stage.turns.find((turn) => turn.id === id)?.state === 'open') await stage.kill9();
      await stage.running();
      const closed = 'Report within everyMs that none is open any more.';
      await stage.until('openTurnId null', names(null), closed, { withinMs, seen });
    },
  },
];
