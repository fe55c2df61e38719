import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Frame } from '@interlude/protocol/frames';
import { MAX_TASK_OUTPUT_BYTES } from '@interlude/protocol/limits';
import type { SessionSummary, TaskList, TaskOutputDetail, TranscriptPage } from '@interlude/protocol/read-models';
import { foldTaskOutput } from '@interlude/protocol/task-output';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** Task output, stored with its task and equal live and reloaded. Each test has its own session and agent. */
export function describeTaskOutputContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`task output, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        id = `output-${serial}`;
        seq = 0;
        await run();
      });

    const custom = (eventName: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name: eventName, value });
    const started = (more: object = {}) => custom('task:started', { task_id: 't', description: 'Build', ...more });
    const ended = custom('task:completed', { task_id: 't', status: 'failed', exit_code: 2 });
    const output = (value: object) => custom('task:output', { task_id: 't', ...value });
    const send = (events: AgUiEvent[], sessionId = id) =>
      ingest(
        target,
        events.map((event) => record(++seq, { agentId: id, sessionId, event })),
        1,
        id,
      );
    const read = async (path: string) => (await target.get(`/api/v1/sessions/${path}`)).json();
    const kept = (query = '', sessionId = id): Promise<TaskOutputDetail> => read(`${sessionId}/tasks/t/output${query}`);
    const tasks = async (sessionId = id) => ((await read(`${sessionId}/tasks`)) as TaskList).tasks;
    const text = ({ output: found }: TaskOutputDetail) => found?.parts.map((part) => part.text).join('') ?? null;
    const entries = (frames: readonly Frame[]) =>
      frames.flatMap((frame) =>
        frame.event === 'session-event' ? [{ position: String(frame.id), ...frame.data }] : [],
      );

    test('is readable while the task runs and after its end, from any offset', async () => {
      await send([started(), output({ text: 'one\n', from: 0, to: 4 })]);
      expect(await tasks()).toMatchObject([{ id: 't', status: 'running', hasOutput: true }]);
      expect(await kept()).toMatchObject({ output: { hasEnded: false } });
      expect(text(await kept())).toBe('one\n');
      await send([ended, output({ text: 'two\n', from: 4, to: 8, redacted: 1 }), output({ text: '', ended: true })]);
      const last = await kept();
      expect(text(last)).toBe('one\ntwo\n');
      expect(last).toMatchObject({ output: { hasEnded: true, redacted: 1, error: null } });
    });

    test('belongs to no turn, and is no progress of its agent', async () => {
      await send([{ type: 'RUN_STARTED', threadId: id, runId: `${id}-r` }, started()]);
      const summary = async (): Promise<SessionSummary> => (await read(id)).session;
      const before = await summary();
      const turns = async () => ((await read(`${id}/transcript`)) as TranscriptPage).turns;
      const text = JSON.stringify(await turns());
      await send([output({ text: 'noise\n', status: 'completed' })]);
      expect(JSON.stringify(await turns())).toBe(text);
      expect(await summary()).toMatchObject({ lastEventAt: before.lastEventAt, runningTaskCount: 1 });
    });

    test('creates no task for an unknown id', async () => {
      await send([output({ text: 'who?\n' })]);
      expect(await tasks()).toEqual([]);
      expect((await target.get(`/api/v1/sessions/${id}/tasks/t/output`)).status).toBe(404);
    });

    test('output belongs to the session that started the task, whoever reports it', async () => {
      await send([started()]);
      await send([output({ text: 'mine\n' })], `${id}-other`);
      expect(text(await kept())).toBe('mine\n');
      expect(await tasks(`${id}-other`)).toEqual([]);
    });

    test('belongs to the named run, else to the latest, live and reloaded', async () => {
      await send([output({ text: 'before anything began\n' })]);
      await send([started(), output({ text: 'unnamed\n' })]);
      const unnamed = await kept();
      await send([custom('task:completed', { task_id: 't', status: 'completed' })]);
      await send([started({ run_id: 'r1' }), output({ run_id: 'r1', text: 'first\n' })]);
      const first = await kept();
      // A second run starts during the first, which writes the rest after that.
      await send([started({ run_id: 'r2' }), output({ run_id: 'r2', text: 'second\n' }), output({ text: 'too\n' })]);
      await send([output({ run_id: 'r1', text: 'rest\n', ended: true })]);
      for (let line = 0; line < 70; line++) await send([output({ run_id: line % 2 ? 'r1' : 'r2', text: '.' })]);
      const [zeroth, one, two] = await tasks();
      const of = (position = '') => kept(`?position=${position}`);
      expect(text(await of(zeroth?.position))).toBe('unnamed\n');
      expect(text(await of(one?.position))).toBe(`first\nrest\n${'.'.repeat(35)}`);
      expect(text(await of(two?.position))).toBe(`second\ntoo\n${'.'.repeat(35)}`);
      expect(text(await kept('?runId=r1'))).toBe(text(await of(one?.position)));
      expect(text(await kept())).toBe(text(await of(two?.position)));
      for (const known of [unnamed, first]) {
        const stream = await target.stream(`topic=session:${id}&after=${known.position}`);
        await stream.frame('up-to-date');
        const { position: _, ...now } = await of(known.taskPosition);
        const { position: __, ...then } = known;
        expect(foldTaskOutput(then, entries(stream.frames))).toEqual(now);
        await stream.cancel();
      }
      for (const query of ['?runId=r9', '?position=1']) {
        expect((await target.get(`/api/v1/sessions/${id}/tasks/t/output${query}`)).status).toBe(404);
      }
    });

    test('keeps the newest bytes of 2,000 pieces', async () => {
      await send([started(), output({ text: 'x'.repeat(MAX_TASK_OUTPUT_BYTES) })]);
      await send(Array.from({ length: 2_000 }, () => output({ text: 'y' })));
      await send([output({ text: 'z' })]);
      const keptText = text(await kept()) ?? '';
      expect([keptText.length, keptText.slice(-3)]).toEqual([MAX_TASK_OUTPUT_BYTES, 'yyz']);
    });

    test('output is truncated to the newest in few rows, equal live and reloaded from any position', async () => {
      const position = async () => String((await read(`${id}/transcript`)).position);
      await send([started()]);
      const before = await kept();
      const reader = await target.stream(`topic=session:${id}&after=${before.position}`);
      await reader.frame('up-to-date');
      const snapshots: TaskOutputDetail[] = [before];
      let offset = 0;
      for (let piece = 0; piece < 150; piece++) {
        // Some pieces are skipped, and some repeated from an earlier offset.
        if (piece % 40 === 39) offset += 5_000;
        if (piece % 70 === 19) offset -= 9_000;
        const line = `${piece} ${'x'.repeat(4_000)}\n`;
        await send([output({ text: line, from: offset, to: offset + line.length })]);
        offset += line.length;
        if (piece % 25 === 0) snapshots.push(await kept());
      }
      await send([ended, output({ text: '', ended: true })]);
      const after = await position();
      const now = await kept();
      const size = now.output?.parts.reduce((sum, part) => sum + part.text.length, 0) ?? 0;
      expect(size).toBeLessThanOrEqual(MAX_TASK_OUTPUT_BYTES);
      expect(size).toBeGreaterThan(200_000);
      const frames = await reader.until((all) =>
        entries(all).some(({ event }) => (event.value as { ended?: boolean })?.ended === true),
      );
      const { position: _, ...reloaded } = now;
      for (const snapshot of snapshots) {
        const { position: since, ...known } = snapshot;
        const watched = entries(frames).filter((entry) => Number(entry.position) > Number(since));
        expect(foldTaskOutput(known, watched)).toEqual(reloaded);
        const again = await target.stream(`topic=session:${id}&after=${since}`);
        await again.frame('up-to-date');
        expect(foldTaskOutput(known, entries(again.frames))).toEqual(reloaded);
        await again.cancel();
      }
      const all = await target.stream(`topic=session:${id}&after=0`);
      await all.frame('up-to-date');
      const rows = entries(all.frames).filter(({ event }) => event.name === 'task:output');
      expect(rows.length).toBeLessThanOrEqual(34);
      expect(Number(idOfLast(rows))).toBeLessThanOrEqual(Number(after));
      for (const stream of [reader, all]) await stream.cancel();
    });

    test('accepts any value without failing', async () => {
      await send([
        started(),
        output({ text: 7 }),
        output({ text: '\u0000\u001b[31m\u202e', from: -1, to: 'x' }),
        {
          ...output({ output: { parts: [{ from: 3, to: 1, text: 'odd' }, 7, null] } }),
          metadata: { interlude: { whole: true } },
        },
        output({ text: 'end', redacted: 1e300 }),
      ]);
      expect(text(await kept())).toBe('oddend');
    });
  });
}

function idOfLast(rows: readonly { position: string }[]): string | undefined {
  return rows.at(-1)?.position;
}
