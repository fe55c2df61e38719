import { serverLog } from './server-log.mjs';

/**
 * Every error of the wire: one code, one status, one body shape.
 *
 * Failure: expected outcomes (`duplicate`, `gap`, `fenced`) are data and become an AppError only at the edge. A request
 * with an error response has stored nothing.
 */
export const ERROR_STATUS = {
  malformed: 400,
  invalid_argument: 400,
  unauthenticated: 401,
  forbidden: 403,
  stale_epoch: 403,
  cross_origin: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  other_principal: 409,
  sequence_gap: 409,
  epoch_ahead: 409,
  too_large: 413,
  unsupported_encoding: 415,
  misdirected_host: 421,
  too_many_requests: 429,
  internal: 500,
  unavailable: 503,
} as const satisfies Record<string, number>;

export type ErrorCode = keyof typeof ERROR_STATUS;

export interface ErrorBody {
  error: { code: ErrorCode; message: string; [detail: string]: unknown };
}

/** An error for people and programs. `message` says what happened and what to do next. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; details?: Record<string, unknown>; headers?: Record<string, string> } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.details = options.details ?? {};
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return ERROR_STATUS[this.code];
  }

  /** Compares names, because Next bundles this file more than once and each copy must recognize the others' errors. */
  static override [Symbol.hasInstance](value: unknown): value is AppError {
    return typeof value === 'object' && value !== null && 'name' in value && value.name === 'AppError';
  }
}

function errorBody(error: AppError): ErrorBody {
  return { error: { ...error.details, code: error.code, message: error.message } };
}

/**
 * The only way an error leaves the server. An unexpected error is logged in full. Its response omits the text, which
 * may contain what the caller must not see, and gives the request id that leads to the log line.
 */
export function toResponse(error: unknown, request?: Request): Response {
  return responseOf(error instanceof AppError ? error : unexpected(error, request));
}

function unexpected(error: unknown, request: Request | undefined): AppError {
  const requestId = request === undefined ? crypto.randomUUID() : requestIdOf(request);
  serverLog('error', 'unexpected error', { error, requestId });
  return new AppError(
    'internal',
    'Interlude failed to handle this request. Try again. The server’s log has the cause.',
    {
      cause: error,
      details: { requestId },
    },
  );
}

function responseOf(known: AppError): Response {
  return Response.json(errorBody(known), {
    status: known.status,
    headers: { 'cache-control': 'no-store', ...known.headers },
  });
}

/** An error for the log: the message of an AppError, all of an unexpected error. */
export function forLog(error: unknown): unknown {
  return error instanceof AppError ? error.message : error;
}

/** Ends a stream whose cause is already logged: the code that pipes it logs every error except an abort. */
export function toAbortError(error: unknown): DOMException {
  return new DOMException(error instanceof Error ? error.message : String(error), 'AbortError');
}

const CLIENT_CLOSED_REQUEST = 499;

/** Wraps a handler so that its errors become error responses. A client's disconnect is not logged. */
export function withErrors<Args extends [Request, ...unknown[]]>(
  handler: (...args: Args) => Promise<Response>,
): (...args: Args) => Promise<Response> {
  return async (...args) => {
    try {
      return await handler(...args);
    } catch (error) {
      const { signal } = args[0];
      if (signal.aborted && error === signal.reason) return new Response(null, { status: CLIENT_CLOSED_REQUEST });
      return toResponse(error, args[0]);
    }
  };
}

const ids = new WeakMap<Request, string>();

/** A request's id in the log, stable per request: its `x-request-id`, else its trace id, else a random one. */
export function requestIdOf(request: Request): string {
  const known = ids.get(request);
  if (known !== undefined) return known;
  const { headers } = request;
  const given = headers.get('x-request-id') ?? '';
  const [, traceId] = /^00-([0-9a-f]{32})-/.exec(headers.get('traceparent') ?? '') ?? [];
  const id = /^[\w.:-]{1,128}$/.test(given) ? given : (traceId ?? crypto.randomUUID());
  ids.set(request, id);
  return id;
}
