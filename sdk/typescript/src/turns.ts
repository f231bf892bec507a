/** Memory in the turns of a chat: recalls with a deadline, and turns that are stored in the background. */

const PROBE_PAUSE_MS = 1_000;
const RETRY_PAUSES_MS = [200, 1_000, 5_000];
const LAST_PAUSE_MS = 30_000;
const MAX_WAITING = 1_000;

/** Ends waiting at a deadline, and waits no more until a probe beside a later call was answered in time. */
export class Deadline {
  readonly #timeoutMs: number;
  #refused: unknown;
  #probing = false;
  #probedAt = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  async run<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#refused !== undefined) {
      if (!this.#probing && Date.now() >= this.#probedAt + PROBE_PAUSE_MS) void this.#probe(work);
      throw this.#refused;
    }
    const late = AbortSignal.timeout(this.#timeoutMs);
    try {
      return await work(signal ? AbortSignal.any([signal, late]) : late);
    } catch (error) {
      if (!signal?.aborted) this.#refused = late.aborted ? new Error(`no answer within ${this.#timeoutMs} ms`) : error;
      throw this.#refused ?? error;
    }
  }

  async #probe(work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    this.#probing = true;
    try {
      await work(AbortSignal.timeout(this.#timeoutMs));
      this.#refused = undefined;
    } catch {
      // It is still away.
    } finally {
      this.#probing = false;
      this.#probedAt = Date.now();
    }
  }
}

/** Stores turns one after the other, each until the server takes it. */
export class TurnQueue {
  readonly #report: (error: unknown) => void;
  readonly #waiting: Array<() => Promise<unknown>> = [];
  #running: Promise<void> | undefined;

  constructor(report: (error: unknown) => void) {
    this.#report = report;
    globalThis.process?.once?.("exit", () => {
      if (this.#waiting.length > 0) report(new Error(`${this.#waiting.length} turns were not stored`));
    });
  }

  /** Queue a turn; `store` is called again until it succeeds or the server refuses it. */
  put(store: () => Promise<unknown>): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#report(new Error(`a turn is dropped, because ${MAX_WAITING} others wait for the server`));
      return;
    }
    this.#waiting.push(store);
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
  }

  /** Wait until all turns are stored, at most so long; return how many are still waiting. */
  async flush(timeoutMs = 5_000): Promise<number> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, timeoutMs)));
    await Promise.race([this.#running, late]);
    clearTimeout(timer);
    return this.#waiting.length;
  }

  async #run(): Promise<void> {
    for (let store = this.#waiting[0]; store; store = this.#waiting[0]) {
      await this.#store(store);
      this.#waiting.shift();
    }
  }

  async #store(store: () => Promise<unknown>): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await store();
        return;
      } catch (error) {
        if (attempt === 0) this.#report(error);
        const status = (error as { status?: number }).status ?? 0;
        if (status >= 400 && status < 500 && status !== 429) return; // it will never be taken
        const last = attempt >= RETRY_PAUSES_MS.length;
        await new Promise((resolve) => {
          const timer = setTimeout(resolve, RETRY_PAUSES_MS[attempt] ?? LAST_PAUSE_MS);
          if (last) timer.unref?.(); // a program may end while the server is away for long
        });
      }
    }
  }
}
