import { setTimeout as delay } from "node:timers/promises";
import { AckPolicy, type ConsumerInfo, DeliverPolicy, NatsError, nanos } from "nats";
import { type Broker, brokerFailure } from "../io/nats.ts";

/** The one durable consumer of a stream. Its deliver subject says whose it is: `mesh.deliver.<stream>.<epoch>.<start>`. */
export const CONSUMER = "controller";
export const IDLE_HEARTBEAT = 1_000;
const MOST_UNACKED = 1_024;
const TAKEN = 10_013;
const TRIES = 8;

export interface Claim {
  stream: string;
  epoch: number;
  /** Subscribed to before the claim, since only a consumer that somebody listens to is refused to others. */
  subject: string;
  /** The stream sequence to start after. */
  after: number;
}

export function deliverSubject(stream: string, epoch: number, start: string): string {
  return `mesh.deliver.${stream}.${epoch}.${start}`;
}

function epochOf(subject: string | undefined): number {
  const epoch = Number(subject?.split(".")[3]);
  return Number.isSafeInteger(epoch) ? epoch : -1;
}

/**
 * Makes the consumer with the claim's own deliver subject. One of an earlier epoch, or of an earlier start in this one, is
 * deleted first. The server refuses a second that is being listened to (10013), so that of several at once one wins.
 * @returns "taken-over" when a later epoch has it
 */
export async function claimConsumer(broker: Broker, claim: Claim): Promise<"claimed" | "taken-over"> {
  const manager = await broker.manager();
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const standing = await consumerOf(broker, claim.stream);
    if (standing && standing.config.deliver_subject !== claim.subject) {
      if (epochOf(standing.config.deliver_subject) > claim.epoch) return "taken-over";
      await manager.consumers.delete(claim.stream, CONSUMER).catch(ignoreMissing);
    }
    try {
      const made = await manager.consumers.add(claim.stream, configOf(claim));
      // The server changes the subject of a consumer that nobody listens to, and keeps where it stands.
      const whole =
        made.config.deliver_subject === claim.subject && made.config.opt_start_seq === claim.after + 1;
      if (whole && made.created !== standing?.created) return "claimed";
      await manager.consumers.delete(claim.stream, CONSUMER).catch(ignoreMissing);
    } catch (error) {
      if (!(error instanceof NatsError) || !error.api_error) throw error;
      if (error.api_error.err_code !== TAKEN && error.api_error.code !== 500) throw error;
    }
    await delay(Math.random() * 50);
  }
  const standing = await consumerOf(broker, claim.stream);
  if (epochOf(standing?.config.deliver_subject) > claim.epoch) return "taken-over";
  throw new Error(`consumer of ${claim.stream}: others were faster each time`);
}

export async function consumerOf(broker: Broker, stream: string): Promise<ConsumerInfo | null> {
  const manager = await broker.manager();
  return manager.consumers.info(stream, CONSUMER).catch((error: unknown) => {
    if (brokerFailure(error) === "missing") return null;
    throw error;
  });
}

/** Deletes the consumer if it is still this claim's: a clean stop leaves nothing for the next to wait for. */
export async function releaseConsumer(broker: Broker, claim: Claim): Promise<void> {
  const standing = await consumerOf(broker, claim.stream);
  if (standing?.config.deliver_subject !== claim.subject) return;
  const manager = await broker.manager();
  await manager.consumers.delete(claim.stream, CONSUMER).catch(ignoreMissing);
}

function configOf(claim: Claim) {
  return {
    durable_name: CONSUMER,
    description: `epoch ${claim.epoch}`,
    deliver_subject: claim.subject,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: claim.after + 1,
    ack_policy: AckPolicy.All,
    ack_wait: nanos(30_000),
    max_ack_pending: MOST_UNACKED,
    idle_heartbeat: nanos(IDLE_HEARTBEAT),
  };
}

function ignoreMissing(error: unknown): false {
  if (brokerFailure(error) === "missing") return false;
  throw error;
}
