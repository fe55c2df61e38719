import { agree, type Check, hold } from '../check';
import type { Fault, SeenRequest } from './fake-interlude';
import { type RunnerStage, saidIn } from './runner-stage';

const WHY = '2, Errors';
const REFUSED_MS = 1_200;
const EARLY_MS = 50;
const STALE_MS = 1_500;

/** Lets the weather be so while the work runs, and fair afterwards. */
async function under<Result>(
  stage: RunnerStage,
  weather: (request: SeenRequest) => Fault | null,
  work: () => Promise<Result>,
): Promise<Result> {
  stage.fake.weather = weather;
  try {
    return await work();
  } finally {
    stage.fake.weather = () => null;
  }
}

const counted = (count: number) => Array.from({ length: count }, (_, at) => `${at + 1}`);
const refuse = (status: number, code: string): Fault => ({ kind: 'refuse', status, code });

export const ANSWERS: readonly Check<RunnerStage>[] = [
  {
    group: 'answers',
    name: 'what was taken, and whose answer was cut off, is sent again as it was',
    why: '3, Ingest',
    async run(stage) {
      await stage.running();
      const { ledger } = stage.fake;
      const [duplicates, faults] = [ledger.duplicates, ledger.faults.length];
      const script: Fault[] = [{ kind: 'taken-then-cut' }, { kind: 'half-an-answer' }];
      const turn = await under(
        stage,
        () => script.shift() ?? null,
        async () => {
          const told = await stage.obey('count 10 0');
          await stage.until('two more requests', () => script.length === 0, 'Report as often as you promised.');
          return told;
        },
      );
      const todo = 'Send what was not acknowledged again, under the same numbers.';
      agree('the texts', saidIn(turn), counted(10), todo);
      await stage.until('records that come again', () => ledger.duplicates > duplicates && script.length === 0, todo);
      agree('records that changed', ledger.faults.slice(faults), [], todo);
    },
  },
  {
    group: 'answers',
    name: 'after 429 and 503 nothing is sent before Retry-After is over',
    why: WHY,
    async run(stage) {
      await stage.running();
      for (const [status, code] of [
        [429, 'too_many_requests'],
        [503, 'unavailable'],
      ] as const) {
        let refused: SeenRequest | null = null;
        const weather = (request: SeenRequest): Fault | null => {
          if (refused !== null) return null;
          refused = request;
          return { kind: 'refuse', status, code, retryAfter: 1 };
        };
        await under(stage, weather, () => stage.obey('say later'));
        const at = (refused as SeenRequest | null)?.endedAt ?? 0;
        const next = stage.fake.seen.find((request) => request.at > at);
        const waited = (next?.at ?? 0) - at;
        hold(
          waited >= 1_000 - EARLY_MS,
          `1 s between ${status} and the next try`,
          `${waited} ms`,
          'Wait for Retry-After.',
        );
      }
    },
  },
  {
    group: 'answers',
    name: 'a token that is refused stops the sending and not the collecting',
    why: WHY,
    async run(stage) {
      await stage.running();
      const seen = stage.fake.seen.length;
      const tries = () => stage.fake.seen.length - seen;
      const message = await under(
        stage,
        () => refuse(401, 'unauthenticated'),
        async () => {
          const said = await stage.say('count 20 10');
          await stage.until('a request', () => tries() > 0, 'Send what the agent says.');
          await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
          return said;
        },
      );
      hold(tries() <= 20, 'a few tries', `${tries()} in ${REFUSED_MS} ms`, 'Wait longer between tries.');
      // Who waits for long because of the token hears by its stream that the server is there again.
      stage.fake.commands.endStreams('event: bye\ndata: {"reason":"planned"}\n\n');
      const withinMs = Math.max(stage.patience.withinMs, 35_000);
      const todo = 'Keep everything, and try again.';
      const ended = () => stage.turns.find((turn) => turn.state !== 'open' && turn.userMessageIds.includes(message.id));
      agree('the texts', saidIn(await stage.until('the turn', ended, todo, { withinMs })), counted(20), todo);
    },
  },
  {
    group: 'answers',
    name: 'a request that is too large is sent in smaller ones, and nothing of it is given up',
    why: WHY,
    async run(stage) {
      await stage.running();
      const lost = stage.fake.ledger.lost();
      const tooLarge = ({ records }: SeenRequest) => (records.length > 3 ? refuse(413, 'too_large') : null);
      const seen = stage.fake.seen.length;
      const turn = await under(stage, tooLarge, () => stage.obey('count 40 0'));
      const todo = 'Halve the batch until it is taken.';
      agree('the texts', saidIn(turn), counted(40), todo);
      agree('what was declared lost', stage.fake.ledger.lost() - lost, 0, todo);
      const tries = stage.fake.seen.length - seen;
      hold(tries < 300, 'a bounded number of tries', tries, todo);
    },
  },
  {
    group: 'answers',
    name: 'a record that is refused for good is declared lost in its place, and what follows is sent',
    why: '3, Ingest, 6',
    async run(stage) {
      await stage.running();
      const lost = stage.fake.ledger.lost();
      const isBad = ({ records }: SeenRequest) => records.some((record) => JSON.stringify(record).includes('poison'));
      const weather = (request: SeenRequest) => (isBad(request) ? refuse(400, 'malformed') : null);
      // What else a runner says of it may name it: a log line that quotes the text, say.
      const turn = await under(stage, weather, () => stage.obey('say poison'));
      const todo = 'Find the record that is refused, and send a `lost` record under its number.';
      hold(turn.state === 'finished', 'the turn to end', turn.state, todo);
      hold(stage.fake.ledger.lost() > lost, 'a lost record', 'none', todo);
      agree('the next turn', saidIn(await stage.obey('say better')), ['better'], todo);
    },
  },
  {
    group: 'answers',
    name: 'an answer that comes late is waited for: one request at a time',
    why: '3, Ingest',
    async run(stage) {
      await stage.running();
      const seen = stage.fake.seen.length;
      await under(
        stage,
        () => ({ kind: 'slow', ms: 300 }),
        () => stage.obey('count 10 20'),
      );
      const requests = stage.fake.seen.slice(seen);
      const early = requests.filter(
        ({ at }, index) => index > 0 && at < (requests[index - 1]?.endedAt ?? 0) - EARLY_MS,
      );
      const todo = 'Send the next request once the one before it was answered.';
      agree(
        'requests beside another',
        early.map(({ records }) => records.length),
        [],
        todo,
      );
    },
  },
  {
    group: 'answers',
    name: 'a runner whose outbox is fenced sends nothing more under that epoch',
    why: '3, Ingest, 2',
    async run(stage) {
      await stage.obey('say before');
      const epoch = Math.max(...stage.fake.ledger.taken.map((record) => record.epoch));
      const isStale = (request: SeenRequest) => (request.producer.epoch <= epoch ? refuse(403, 'stale_epoch') : null);
      await under(stage, isStale, async () => {
        await stage.say('count 30 50');
        await stage.until('a request', () => stage.fake.seen.some(({ status }) => status === 403), 'Send what waits.');
        const seen = stage.fake.seen.length;
        await new Promise((resolve) => setTimeout(resolve, STALE_MS));
        const later = stage.fake.seen.slice(seen).filter(({ producer }) => producer.epoch <= epoch);
        const todo = 'End for good at 403 stale_epoch: another outbox of this producer has written.';
        hold(later.length <= 1, 'no more requests', `${later.length} in ${STALE_MS} ms`, todo);
      });
      await stage.kill9();
      await stage.obey('say after');
    },
  },
];
