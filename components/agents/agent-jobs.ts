import { Ask } from '@/components/live/ask';
import { fetchJson, postJson, putJson } from '@/components/live/fetch-json';
import { plural } from '@/components/ui/duration';
import type { CommandAnswer, RetireAnswer } from '@/lib/protocol/commands';
import type { InboxList, InboxMarked } from '@/lib/protocol/inbox';
import type { SessionList, SessionSummary } from '@/lib/protocol/read-models';
import type { AgentJob } from './use-each-agent';

const PAGE = 100;

/** Interrupts the turn of each session that has one, as it is open now. */
export const interruptAll: AgentJob = async ({ id }) => {
  const open: SessionSummary[] = [];
  for (let after: string | null = '0'; after !== null; ) {
    const params = new URLSearchParams({ agent: id, state: 'working', after, limit: String(PAGE) });
    const page: SessionList = await fetchJson<SessionList>(`/sessions?${params}`);
    open.push(...page.sessions.filter(({ openTurnId }) => openTurnId !== null));
    after = page.next;
  }
  if (open.length === 0) return 'no turn is open';
  const refused: string[] = [];
  for (const session of open) {
    const path = `/sessions/${encodeURIComponent(session.id)}/interrupt`;
    await new Ask()
      .post<CommandAnswer>(path, { turnId: session.openTurnId })
      .catch((error: Error) => refused.push(error.message));
  }
  const asked = open.length - refused.length;
  if (asked === 0) throw new Error(refused[0]);
  const also = refused.length === 0 ? '' : `; ${refused.length} refused: ${refused[0]}`;
  return `asked to interrupt ${plural(asked, 'turn')}${also}`;
};

/** Marks what the inbox has of an agent and its sessions as seen, but for what waits for an answer. */
export const markSeen: AgentJob = async ({ id }) => {
  let seen = 0;
  for (let after: string | null = '0'; after !== null; ) {
    const params = new URLSearchParams({ agent: id, after, limit: String(PAGE) });
    for (const kind of SEEN_KINDS) params.append('kind', kind);
    const page: InboxList = await fetchJson<InboxList>(`/inbox?${params}`);
    const ids = page.items.filter(({ seenAt }) => seenAt === null).map((item) => item.id);
    if (ids.length > 0) await postJson<InboxMarked>('/inbox/marks', { ids, mark: 'seen' });
    seen += ids.length;
    after = page.next;
  }
  return seen === 0 ? 'nothing new' : `${plural(seen, 'item')} seen`;
};
const SEEN_KINDS = ['failure', 'lost-contact', 'hook-failure', 'delivery-gap'];

export const retire: AgentJob = async ({ id }) => {
  await putJson<RetireAnswer>(`/agents/${encodeURIComponent(id)}/retirement`, { retired: true });
  return 'retired';
};

export const takeBack: AgentJob = async ({ id }) => {
  await putJson<RetireAnswer>(`/agents/${encodeURIComponent(id)}/retirement`, { retired: false });
  return 'taken back';
};
