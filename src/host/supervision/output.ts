import type { Clock } from "../../io/clock.ts";
import { rotate, sizeOf, writeLine } from "./logs.ts";

/** Once a minute at most, so that a flood of output is not one of events and writes. */
const SAY_AGAIN = 60_000;

/** Keeps one output file within its bound. */
export class Output {
  readonly file: string;
  private readonly bound: number;
  private readonly clock: Clock;
  private size = 0;
  private flooding = false;
  private said = -SAY_AGAIN;

  constructor(file: string, bound: number, clock: Clock) {
    this.file = file;
    this.bound = bound;
    this.clock = clock;
  }

  /**
   * Looks, and rotates where it has to.
   * @param written whether something may write to it now
   * @param dropped called with the bytes that are lost; `say` when people should hear of it
   * @returns true while it grows so fast that the next look should be soon
   */
  tend(written: boolean, dropped: (bytes: number, say: boolean) => void): boolean {
    if (!written && !this.flooding) return false;
    const size = sizeOf(this.file);
    this.flooding = size - this.size > this.bound / 20;
    this.size = size;
    if (size <= this.bound) return this.flooding;
    const bytes = rotate(this.file, this.bound);
    this.size = 0;
    if (!bytes) return this.flooding;
    writeLine(this.file, `[mesh] ${bytes} bytes of output were dropped here`);
    const say = this.clock.monotonic() - this.said >= SAY_AGAIN;
    if (say) this.said = this.clock.monotonic();
    dropped(bytes, say);
    return this.flooding;
  }
}
