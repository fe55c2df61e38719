import { type Fields, textOf } from '@interlude/protocol/fields';
import { agree, type Check, hold } from '../check';
import type { JournalLine } from './agent-journal';
import { type RunnerStage, saidIn } from './runner-stage';

const WHY = '3, Ingest';
const OUTAGE_MS = 2_500;
/** What an agent wrote so long before a kill, its runner has stored. */
const STORED_MS = 1_500;
const FORGOTTEN = 5;

export const OUTBOX: readonly Check<RunnerStage>[] = [
  {
    group: 'outbox',
    name: 'an outage uses nothing up: however often it is tried, everything arrives in the end, once',
    why: '2, Errors',
    async run(stage) {
      await stage.running();
      const seen = stage.fake.seen.length;
      let tries = 0;
      stage.fake.weather = () => {
        tries += 1;
        return tries % 2 === 0 ? { kind: 'cut' } : { kind: 'refuse', status: 500 + (tries % 4), code: 'internal' };
      };
      const message = await stage.say('count 100 10');
      const todo = 'Try again without limit, after waits that grow, and count no attempt against a record.';
      await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS));
      const requests = stage.fake.seen.length - seen;
      hold(requests <= 50, 'no more than 50 tries', `${requests} in ${OUTAGE_MS} ms`, todo);
      await stage.until('several tries', () => stage.fake.seen.length - seen >= 2, todo);
      stage.fake.weather = () => null;
      const expected = Array.from({ length: 100 }, (_, at) => `${at + 1}`);
      agree('the texts', saidIn(await stage.answered(message)), expected, todo);
    },
  },
  {
    group: 'outbox',
    name: 'what waits when the runner is killed is sent by the next one',
    why: '8, Invariants, 4',
    async run(stage) {
      await stage.running();
      stage.fake.weather = () => ({ kind: 'refuse', status: 503, code: 'unavailable' });
      const message = await stage.say('count 800 5');
      const wrote = () => stage.journal.inTurnOf(message.id).filter(({ type }) => type === 'say');
      await stage.until('its first words', () => wrote().length >= 400, 'Give the message to the agent.');
      const killedAt = Date.now();
      await stage.kill9();
      stage.fake.weather = () => null;
      await stage.running();
      const todo = 'Store each record before you do anything else with it.';
      const isTold = ({ id }: JournalLine) => stage.fake.ledger.text(stage.sessionId, textOf(id) ?? '') !== '';
      const stored = wrote().filter(({ at }) => at < killedAt - STORED_MS);
      const missing = () => stored.filter((line) => !isTold(line)).map(({ text }) => text);
      const seen = () => `without ${missing().slice(0, 5).join(', ')}`;
      await stage.until(`all ${stored.length} texts`, () => missing().length === 0, todo, { seen });
      const said = saidIn(await stage.answered(message));
      agree(
        'them',
        said,
        said.map((_, at) => `${at + 1}`),
        'Lose none in between, and tell none twice.',
      );
      const got = stage.journal.got('message').filter(({ id }) => id === message.id);
      agree('how often the agents got the message', got.length, 1, 'Keep what has begun with what began.');
    },
  },
  {
    group: 'outbox',
    name: 'what a server has lost that was put back is sent again, or declared lost',
    why: '3, Ingest, 2 and 6',
    async run(stage) {
      await stage.obey('count 10 0');
      const { ledger } = stage.fake;
      const lost = ledger.lost();
      const gone = ledger.forget(FORGOTTEN);
      agree('the next turn', saidIn(await stage.obey('say who is missing?')), ['who is missing?'], 'Go on.');
      const contents = (records: Fields[]) => records.map(({ seq: _, ...record }) => JSON.stringify(record));
      const there = new Set(contents(ledger.taken.map(({ record }) => record)));
      const missing = contents(gone.map(({ record }) => record)).filter((content) => !there.has(content)).length;
      const todo = 'At 409 with a lower expectedSeq: send it again from there, or begin an epoch with a `lost` record.';
      hold(
        missing === 0 || ledger.lost() - lost >= missing,
        `${missing} records declared lost`,
        ledger.lost() - lost,
        todo,
      );
    },
  },
  {
    group: 'outbox',
    name: 'records are numbered from 1 without a hole, and a number keeps its record',
    why: WHY,
    async run(stage) {
      await stage.obey('say the last but one');
      agree('what went wrong', stage.fake.ledger.faults, [], 'Number each record when it is stored, once and for all.');
    },
  },
  {
    group: 'outbox',
    name: 'nothing that the agent said is told twice, whatever was cut off, sent again or killed',
    why: '8, Invariants, 1',
    async run(stage) {
      await stage.obey('say the last');
      const { ledger } = stage.fake;
      const said = stage.journal.wrote('say').filter(({ text }) => (text?.length ?? 0) < 100);
      const odd = said
        .map(({ id, text }) => ({ said: text, told: ledger.text(stage.sessionId, textOf(id) ?? '') }))
        .filter(({ said: words, told }) => told !== words && told !== '' && !words?.startsWith(told));
      agree('texts that are told otherwise', odd.slice(0, 3), [], 'Give each text one message id, and tell it once.');
      const runs = ledger.entries(stage.sessionId).filter(({ event }) => event.type === 'RUN_STARTED');
      const ids = runs.map(({ event }) => event.runId);
      const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
      agree('turns that begin twice', twice, [], 'Tell the beginning of a turn once.');
    },
  },
];
