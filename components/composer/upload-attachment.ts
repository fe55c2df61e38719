import { isImageType, isTextType } from '@interlude/protocol/attachments';
import type { ErrorBody } from '@interlude/protocol/errors';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { fieldsOf, parseJson } from '@interlude/protocol/fields';
import { API_ADDRESS } from '@interlude/protocol/version';
import { apiFetch, pageHeaders, pageTransport } from '@/components/live/api-fetch';
import { leavePage } from '@/components/ui/browser-storage';
import { AWAY, type UploadOutcome } from './upload-list';

/** An upload without progress for this long fails. */
const STILL_WITHIN_MS = 30_000;

/** Browsers report a dropped folder as a file, and refuse to read a file that changed after it was chosen. */
const UNREADABLE: UploadOutcome = {
  kind: 'failed',
  reason: 'The file can’t be read. If it is a folder, attach the files in it. If it changed, choose it again.',
  canRetry: false,
};

/**
 * Uploads a file.
 *
 * @param onProgress receives the fraction sent, from 0 to 1
 */
export async function uploadAttachment(
  sessionId: string,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<UploadOutcome> {
  if (!(await canBeRead(file))) return UNREADABLE;
  const outcome = await sendBytes(sessionId, file, onProgress, signal);
  // A file that changes during the upload fails like a lost connection.
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

/** Reports no progress. For embeds, which replace `fetch`. */
async function sendWithoutProgress(path: string, file: File, signal: AbortSignal): Promise<UploadOutcome> {
  try {
    const init = { method: 'POST', body: file, headers: { 'content-type': claimedType(file.type) }, signal };
    const response = await apiFetch(path, init);
    return outcomeOf(response.status, await response.text());
  } catch {
    return AWAY;
  }
}

/** Uses XMLHttpRequest, because `fetch` reports no upload progress. */
function sendBytes(
  sessionId: string,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<UploadOutcome> {
  const query = new URLSearchParams({ name: file.name });
  const path = `/sessions/${encodeURIComponent(sessionId)}/attachments?${query}`;
  if (pageTransport.fetch) return sendWithoutProgress(path, file, signal);
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(AWAY);
    const request = new XMLHttpRequest();
    request.open('POST', API_ADDRESS + path);
    request.setRequestHeader('content-type', claimedType(file.type));
    for (const [name, value] of Object.entries(pageHeaders())) request.setRequestHeader(name, value);
    let timer: ReturnType<typeof setTimeout>;
    const away = () => resolve(AWAY);
    const restartTimer = () => {
      clearTimeout(timer);
      timer = setTimeout(() => request.abort(), STILL_WITHIN_MS);
    };
    request.upload.onprogress = ({ loaded, total }) => {
      restartTimer();
      onProgress(total > 0 ? loaded / total : 0);
    };
    request.onerror = away;
    request.onabort = away;
    request.onload = () => resolve(outcomeOf(request.status, request.responseText));
    request.onloadend = () => clearTimeout(timer);
    signal.addEventListener('abort', () => request.abort(), { once: true });
    restartTimer();
    request.send(file);
  });
}

function outcomeOf(status: number, text: string): UploadOutcome {
  const body = parseJson(text);
  if (status === 201) return { kind: 'done', attachment: body as Attachment };
  const { code, message } = (fieldsOf(body) as Partial<ErrorBody>).error ?? {};
  if (code === 'other_principal') leavePage();
  const canRetry = status >= 500 || status === 401 || status === 408 || status === 429;
  return { kind: 'failed', reason: message ?? `The server returned ${status}.`, canRetry };
}

/** Sends unknown types as text, which the server verifies: browsers know few text types and report TypeScript as video. */
function claimedType(type: string): string {
  const [plain = ''] = type.toLowerCase().split(';', 1);
  return isImageType(plain) || isTextType(plain) || plain === 'application/pdf' ? plain : 'text/plain';
}
