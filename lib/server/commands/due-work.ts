import type { Database } from '@/db/client';
import { type DueRows, type RowChoice, type RowSweep, type RowWork, selectDue } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/writes';
import { forgottenAttachments, removeAttachments } from './attachment-rows';
import { expiredLevels, expireLevels } from './desire-level';
import { dueStates, resolveDueStates } from './due-states';
import { expireCommands, expiredCommands, type Hour } from './expire-commands';
import { expireRequests, forsakenSessions, giveUpRequests, overdueSessions } from './expire-requests';
import { judgeReplies, overdueReplies } from './overdue-replies';
import { oldActivity, removeActivity } from './remove-activity';
import { missedRunners, openSessions, silentAgents, tellAbsence, tellSilence } from './runner-absence';
import { disconnectSilent, silentRunners } from './runner-connection';
import { tellUndelivered, undeliveredResults } from './undelivered-results';

export interface DueServer {
  database: Database;
  rows: RowSweep;
  replyOverdueMs: number;
  undeliveredMs: number;
  /** Since when a runner that had lost its server would have been noticed here. */
  hearsSince: number;
}

/**
 * All that time alone changes, in the order in which it is done: who is gone, and which commands, requests and log levels
 * are over. When each is due follows from times that were recorded, so it is the same however late it is done.
 */
export function dueWork(server: DueServer, hour: Hour): RowWork[] {
  const { database, rows, replyOverdueMs: overdueMs, undeliveredMs: waitsMs, hearsSince } = server;
  const { now, isSure } = hour;
  const written = (work: (transaction: WriteTransaction, choice: RowChoice) => Promise<number>) => {
    return (choice: RowChoice) => database.writes.run((transaction) => work(transaction, choice));
  };
  /** Half of what gets on is left to others. A server may be far away: no agent has to wait for the answers of another. */
  const atOnce = Math.ceil(database.writes.atOnce / 2);
  const tellAll = async (due: DueRows, choice: RowChoice, tell: typeof tellAbsence) => {
    const { rows: agents } = await database.reader.execute(selectDue(due, choice, due.key, atOnce));
    const outcomes = await Promise.allSettled(
      agents.map((row) => {
        const id = String(row[due.key]);
        const whose = { only: id, except: [] };
        return database.writes.run((transaction) => tell(transaction, now, whose), { keys: [`agent:${id}`] });
      }),
    );
    const failed = outcomes.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
    return outcomes.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0);
  };
  /** One agent's sessions; one by one if they can't be told together. */
  const tellSessions = async (agent: RowChoice, tell: typeof tellAbsence) => {
    const agentId = agent.only ?? '';
    await rows.run({
      kind: `of the missed agent ${JSON.stringify(agentId)} the session`,
      due: openSessions(agentId),
      work: (sessions) => database.writes.run((transaction) => tell(transaction, now, agent, sessions)),
    });
    return 0;
  };
  const told = (kind: string, due: DueRows, tell: typeof tellAbsence): RowWork => ({
    kind,
    due,
    work: (choice) => (choice.only === null ? tellAll(due, choice, tell) : tellSessions(choice, tell)),
  });
  // What this says about an agent can't be taken back, so it needs a clock that can be trusted.
  const requests: RowWork = {
    kind: 'what expired in the session',
    due: overdueSessions(now),
    work: written((transaction, choice) => expireRequests(transaction, now, choice)),
  };
  // nor can what is removed be brought back
  const attachments: RowWork = {
    kind: 'the attachment',
    due: forgottenAttachments(now),
    work: written((transaction, choice) => removeAttachments(transaction, now, choice)),
  };
  return [
    {
      kind: 'the log level of',
      due: expiredLevels(now),
      work: written((transaction, choice) => expireLevels(transaction, now, choice)),
    },
    {
      kind: 'the command',
      due: expiredCommands(hour),
      work: written((transaction, choice) => expireCommands(transaction, hour, choice)),
    },
    ...(isSure ? [requests, attachments] : []),
    {
      kind: 'the silent runner of',
      due: silentRunners(now),
      work: written((transaction, choice) => disconnectSilent(transaction, now, choice, hearsSince)),
    },
    told('the missed runner of', missedRunners(now), tellAbsence),
    told('the silent agent', silentAgents(now), tellSilence),
    {
      kind: 'what was asked in the session',
      due: forsakenSessions(now),
      work: written((transaction, choice) => giveUpRequests(transaction, now, choice)),
    },
    {
      kind: 'the state of the session',
      due: dueStates(now),
      work: written((transaction, choice) => resolveDueStates(transaction, now, choice)),
    },
    {
      kind: 'the activity of',
      due: oldActivity(now),
      work: written((transaction) => removeActivity(transaction, now)),
    },
    {
      kind: 'the overdue reply',
      due: overdueReplies(now, overdueMs),
      work: written((transaction, choice) => judgeReplies(transaction, { now, overdueMs }, choice)),
    },
    {
      kind: 'the result of the task',
      due: undeliveredResults(now, waitsMs),
      work: written((transaction, choice) => tellUndelivered(transaction, { now, waitsMs }, choice)),
    },
  ];
}
