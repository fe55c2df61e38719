import { vi } from 'vitest';

/** An XMLHttpRequest that the test completes. */
export class HeldRequest {
  /** Requests since `hold`. */
  static all: HeldRequest[] = [];
  readonly upload = {};
  url = '';
  status = 0;
  responseText = '';
  onerror = () => {};
  onabort = () => {};
  onload = () => {};
  onloadend = () => {};

  static hold(): void {
    HeldRequest.all = [];
    vi.stubGlobal('XMLHttpRequest', HeldRequest);
  }

  /** @returns the request once it is made */
  static async at(index: number): Promise<HeldRequest> {
    return vi.waitFor(() => {
      const request = HeldRequest.all[index];
      if (request === undefined) throw new Error(`${HeldRequest.all.length} requests were made`);
      return request;
    });
  }

  constructor() {
    HeldRequest.all.push(this);
  }

  open(_method: string, url: string): void {
    this.url = url;
  }

  setRequestHeader(): void {}

  send(): void {}

  abort(): void {
    this.onabort();
    this.onloadend();
  }

  fail(): void {
    this.onerror();
    this.onloadend();
  }

  answer(status: number, body: object): void {
    this.status = status;
    this.responseText = JSON.stringify(body);
    this.onload();
    this.onloadend();
  }
}
