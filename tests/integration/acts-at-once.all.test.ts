import { describe, expect, onTestFinished, test } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { inProcessServer, type ServerTarget } from '../support/server-target';

/** Simultaneous actions of people on unrelated agents. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;

suites('two dashboards on one libSQL server', () => {
  test('apply concurrent actions, each with its own place in the audit', async () => {
    const libsql = await startLibsqlServer();
    onTestFinished(() => libsql.stop());
    const both: ServerTarget[] = [await inProcessServer(libsql.url), await inProcessServer(libsql.url)];
    onTestFinished(async () => void (await Promise.all(both.map((target) => target.close()))));
    const ids = Array.from({ length: 8 }, (_, at) => `s${at}`);
    const [first] = both as [ServerTarget, ServerTarget];
    for (const id of ids)
      await ingest(
        first,
        [record(1, { agentId: id, sessionId: id, event: { type: 'RUN_STARTED', threadId: id, runId: 'r' } })],
        1,
        id,
      );
    const answers = await Promise.all(
      both.flatMap((target, which) =>
        ids.map((id) =>
          target.send(`/api/v1/sessions/${id}/messages`, {
            method: 'POST',
            headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
            body: JSON.stringify({ text: 'Go on', clientId: `${which}-${id}` }),
          }),
        ),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
    const { entries } = await (await first.get('/api/v1/audit?limit=100')).json();
    expect(entries.map(({ number }: { number: number }) => number).sort((a: number, b: number) => a - b)).toEqual(
      answers.map((_, at) => at + 1),
    );
    expect(await (await first.get('/api/v1/audit/check')).json()).toMatchObject({ brokenAt: null });
  });
});
