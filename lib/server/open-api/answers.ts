import type * as access from '@interlude/protocol/access';
import type { Activity } from '@interlude/protocol/activity';
import type { Attachment } from '@interlude/protocol/attachments';
import type { AuditCheck, AuditEntry, AuditPage } from '@interlude/protocol/audit';
import type * as command from '@interlude/protocol/commands';
import type { IngestAnswer } from '@interlude/protocol/envelope';
import type { FrameData } from '@interlude/protocol/frames';
import type { InboxList, InboxMarked } from '@interlude/protocol/inbox';
import type * as model from '@interlude/protocol/read-models';
import type { ServedEvent } from '@interlude/protocol/served-event';
import type { Storage } from '@interlude/protocol/storage';
import type { WebhookDeliveries, WebhookStatus, WebhookTest } from '@interlude/protocol/webhook';
import type { LogLevelDetail } from '@/lib/server/queries/read-logs';

/**
 * What each route answers that answers JSON. From these types, and the words that stand beside them, `npm run schemas`
 * makes answer-schemas.json: there is one place that says what a model is. A test holds what is answered against it.
 */
export interface Answers {
  'GET /healthz': { status: 'ok' };
  'GET /readyz': { status: 'ready' };
  'GET /cron': { status: 'done' };
  'GET /storage': Storage;

  'GET /me': access.Me;
  'GET /me/sign-ins': access.OwnSignIns;
  'DELETE /me/sign-ins': access.OwnSignIns;
  'GET /credentials': access.CredentialList;
  'POST /tokens': access.NewToken;
  'DELETE /credentials/:credentialId': { credential: access.CredentialSummary };
  'POST /sign-in-codes': access.SignInCode;
  'GET /members': access.MemberList;
  'PUT /members/:memberId': { member: access.MemberSummary };
  'POST /embed-tokens': access.NewEmbed;
  'GET /audit': AuditPage;
  'GET /audit/check': AuditCheck;

  'POST /events': IngestAnswer;
  'POST /agents/:agentId/commands/:commandId/ack': command.CommandAnswer;

  'GET /sessions': model.SessionList;
  'GET /sessions/:sessionId': model.SessionDetail;
  'GET /sessions/:sessionId/transcript': model.TranscriptPage;
  'GET /sessions/:sessionId/delivery': model.SessionDelivery;
  'GET /sessions/:sessionId/turn-at': model.TurnAt;
  'GET /sessions/:sessionId/tasks': model.TaskList;
  'GET /sessions/:sessionId/tasks/:taskId': model.TaskDetail;
  'GET /sessions/:sessionId/tasks/:taskId/output': model.TaskOutputDetail;
  'GET /sessions/:sessionId/requests/:requestId': model.RequestDetail;
  'GET /sessions/:sessionId/obligations': model.SessionObligations;
  'GET /inbox': InboxList;
  'GET /activity': Activity;
  'GET /agents': model.AgentList;
  'GET /agents/:agentId': model.AgentDetail;
  'GET /agents/:agentId/parked': model.ParkedList;
  'GET /agents/:agentId/reply-obligations': model.ObligationList;
  'GET /agents/:agentId/log-level': LogLevelDetail;
  'GET /agents/:agentId/logs': model.LogPage;
  'GET /agents/:agentId/logs/components': model.LogComponentList;

  'POST /sessions/:sessionId/messages': command.MessageAnswer;
  'POST /sessions/:sessionId/attachments': Attachment;
  'POST /sessions/:sessionId/interrupt': command.CommandAnswer;
  'POST /sessions/:sessionId/end': command.CommandAnswer;
  'POST /sessions/:sessionId/tasks/:taskId/stop': command.CommandAnswer;
  'POST /sessions/:sessionId/tasks/:taskId/wake': command.CommandAnswer;
  'PUT /sessions/:sessionId/wake-rule': command.WakeRuleAnswer;
  'POST /sessions/:sessionId/requests/:requestId': command.CommandAnswer;
  'PUT /agents/:agentId/log-level': command.LogLevelAnswer;
  'GET /webhook': WebhookStatus;
  'GET /webhook/deliveries': WebhookDeliveries;
  'POST /webhook/test': WebhookTest;
  'POST /inbox/marks': InboxMarked;
  'PUT /sessions/:sessionId/arrangement': model.ArrangementAnswer;
  'POST /sessions/:sessionId/obligations/:messageId/waive': command.WaiveAnswer;
  'POST /sessions/:sessionId/obligations/:messageId/accept': command.AcceptReplyAnswer;
  'PUT /agents/:agentId/retirement': command.RetireAnswer;
  'POST /agents/:agentId/insights/seen': model.InsightsSeen;
  'POST /agents/:agentId/parked/:position/assign': command.ParkedAnswer;
  'POST /agents/:agentId/parked/:position/discard': command.ParkedAnswer;
}

/** What streams and files are made of, by route: of a stream the data of each kind of frame. */
export interface Pieces {
  'GET /stream': FrameData;
  'GET /agents/:agentId/commands': command.CommandFrameData;
  'GET /audit/export': { entry: AuditEntry };
  'POST /agui/:agentId': { event: ServedEvent };
}
