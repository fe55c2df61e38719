import type { AuditPage } from '@interlude/protocol/access';
import { GENESIS_HASH, hashOf } from '@/lib/server/access/audit';
import type { AccessStage } from './access-stage';

/** Entries as they would be after a long time. */
export async function lengthenAudit(stage: AccessStage, count: number): Promise<void> {
  const { entries } = await stage.ask<AuditPage>('/audit?limit=1');
  let [number, head] = [entries[0]?.number ?? 0, entries[0]?.hash ?? GENESIS_HASH];
  const rows: object[] = [];
  for (let made = 0; made < count; made += 1) {
    number += 1;
    const who = { actor: 'Ada', actorKind: 'human', role: 'operator', credentialId: 'token-1', action: 'send message' };
    const what = {
      agentId: null,
      sessionId: `s${number % 7}`,
      target: '/x',
      digest: '',
      origin: '',
      result: 'done',
      times: 1,
    };
    const entry = { number, at: number, ...who, ...what };
    head = hashOf(entry, head);
    rows.push({ ...entry, hash: head });
  }
  await stage.parts.database.writes.run((transaction) =>
    transaction.execute({
      sql: `INSERT INTO audit (number, at, actor, actor_kind, role, credential_id, action, agent_id, session_id, target,
        digest, origin, result, hash) SELECT value->>'number', value->>'at', value->>'actor', value->>'actorKind',
        value->>'role', value->>'credentialId', value->>'action', value->>'agentId', value->>'sessionId',
        value->>'target', value->>'digest', value->>'origin', value->>'result', value->>'hash' FROM json_each(?)`,
      args: [JSON.stringify(rows)],
    }),
  );
}
