import { type Attachment, isImageType, isTextType } from '@/lib/protocol/attachments';
import type { ErrorBody } from '@/lib/protocol/errors';
import { fieldsOf, parseJson } from '@/lib/protocol/fields';
import { PAGE_HEADER } from '@/lib/protocol/page-header';
import { API_BASE } from '@/lib/protocol/version';

export type UploadOutcome =
  | { kind: 'done'; attachment: Attachment }
  /** `canRetry`: the same bytes may be taken another time. */
  | { kind: 'failed'; reason: string; canRetry: boolean };

/** No more of it is sent for so long: the server is taken to be away. */
const STILL_WITHIN_MS = 30_000;

/**
 * Sends the bytes of a file. Not `fetch`, which does not say how far it has come.
 * @param onProgress how much of it has been sent, from 0 to 1
 */
export function uploadAttachment(
  sessionId: string,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<UploadOutcome> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ name: file.name });
    request.open('POST', `${API_BASE}/sessions/${encodeURIComponent(sessionId)}/attachments?${query}`);
    request.setRequestHeader('content-type', claimedType(file.type));
    request.setRequestHeader(PAGE_HEADER, '1');
    let timer: ReturnType<typeof setTimeout>;
    const away = () => resolve({ kind: 'failed', reason: 'The server can’t be reached.', canRetry: true });
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
  const said = (fieldsOf(answer) as Partial<ErrorBody>).error?.message;
  const canRetry = status >= 500 || status === 401 || status === 408 || status === 429;
  return { kind: 'failed', reason: said ?? `The server answered ${status}.`, canRetry };
}

/** Browsers know few kinds of text by name, and take TypeScript for a film: whether it is text, the server sees. */
function claimedType(type: string): string {
  const [plain = ''] = type.toLowerCase().split(';', 1);
  return isImageType(plain) || isTextType(plain) || plain === 'application/pdf' ? plain : 'text/plain';
}
