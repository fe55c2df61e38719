import { type AttachmentRef, attachmentPath, isImageType, isTextType } from '@interlude/protocol/attachments';
import type { ErrorBody } from '@interlude/protocol/errors';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import { API_ADDRESS } from '@interlude/protocol/version';
import { apiFetch, page, pageHeaders } from '@/components/live/api-fetch';
import { leavePage } from '@/components/ui/browser-storage';

export type UploadOutcome =
  | { kind: 'done'; attachment: Attachment }
  /** `canRetry`: the same bytes may be taken another time. */
  | { kind: 'failed'; reason: string; canRetry: boolean };

/** No more of it is sent for so long: the server is taken to be away. */
const STILL_WITHIN_MS = 30_000;

const AWAY: UploadOutcome = { kind: 'failed', reason: 'The server can’t be reached.', canRetry: true };

/** Browsers give a folder that is dropped as a file, and don't read a file that is not as it was when it was chosen. */
const UNREADABLE: UploadOutcome = {
  kind: 'failed',
  reason:
    'It can’t be read. If it is a folder, attach the files in it; if it has changed since you chose it, choose it again.',
  canRetry: false,
};

/**
 * Sends the bytes of a file.
 * @param onProgress how much of it has been sent, from 0 to 1
 */
export async function uploadAttachment(
  sessionId: string,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<UploadOutcome> {
  if (!(await canBeRead(file))) return UNREADABLE;
  const outcome = await sendBytes(sessionId, file, onProgress, signal);
  // A file that changes while it is sent ends as a lost connection does.
  return outcome === AWAY && !(await canBeRead(file)) ? UNREADABLE : outcome;
}

async function canBeRead(file: File): Promise<boolean> {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/** Where this page asks in a way of its own, that says nothing of how far it has come. */
async function sendOwnWay(path: string, file: File, signal: AbortSignal): Promise<UploadOutcome> {
  try {
    const init = { method: 'POST', body: file, headers: { 'content-type': claimedType(file.type) }, signal };
    const answer = await apiFetch(path, init);
    return outcomeOf(answer.status, await answer.text());
  } catch {
    return AWAY;
  }
}

/** Not by `fetch`, which does not say how far it has come. */
function sendBytes(
  sessionId: string,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<UploadOutcome> {
  const query = new URLSearchParams({ name: file.name });
  const path = `/sessions/${encodeURIComponent(sessionId)}/attachments?${query}`;
  if (page.way) return sendOwnWay(path, file, signal);
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(AWAY);
    const request = new XMLHttpRequest();
    request.open('POST', API_ADDRESS + path);
    request.setRequestHeader('content-type', claimedType(file.type));
    for (const [name, value] of Object.entries(pageHeaders())) request.setRequestHeader(name, value);
    let timer: ReturnType<typeof setTimeout>;
    const away = () => resolve(AWAY);
    const isHeard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => request.abort(), STILL_WITHIN_MS);
    };
    request.upload.onprogress = ({ loaded, total }) => {
      isHeard();
      onProgress(total > 0 ? loaded / total : 0);
    };
    request.onerror = away;
    request.onabort = away;
    request.onload = () => resolve(outcomeOf(request.status, request.responseText));
    request.onloadend = () => clearTimeout(timer);
    signal.addEventListener('abort', () => request.abort(), { once: true });
    isHeard();
    request.send(file);
  });
}

function outcomeOf(status: number, text: string): UploadOutcome {
  const answer = parseJson(text);
  if (status === 201) return { kind: 'done', attachment: answer as Attachment };
  const { code, message: said } = (fieldsOf(answer) as Partial<ErrorBody>).error ?? {};
  if (code === 'other_principal') leavePage();
  const canRetry = status >= 500 || status === 401 || status === 408 || status === 429;
  return { kind: 'failed', reason: said ?? `The server answered ${status}.`, canRetry };
}

/** Browsers know few kinds of text by name, and take TypeScript for a film: whether it is text, the server sees. */
function claimedType(type: string): string {
  const [plain = ''] = type.toLowerCase().split(';', 1);
  return isImageType(plain) || isTextType(plain) || plain === 'application/pdf' ? plain : 'text/plain';
}

/** Nobody waits for it. */
const WITHIN_MS = 30_000;

/**
 * Whether the server still has the bytes: what no message names it forgets after a day. They are not sent for that.
 * @returns null if that can't be told now
 */
export async function isKept(sessionId: string, { hash }: AttachmentRef): Promise<boolean | null> {
  try {
    const { status, body } = await apiFetch(attachmentPath(hash, sessionId), {
      headers: { 'if-none-match': `"${hash}"` },
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    await body?.cancel();
    if (status === 304 || status === 200) return true;
    return status === 404 ? false : null;
  } catch {
    return null;
  }
}
