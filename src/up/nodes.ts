import type { StatusDoc } from "../cli/documents.ts";
import { type Link, linkTo } from "../cli/link.ts";

/** What the controller says of the nodes, over a connection that comes back by itself. */
export class NodeList {
  private readonly broker: string;
  private link: Link | null = null;

  constructor(broker: string) {
    this.broker = broker;
  }

  async list(): Promise<Array<{ name: string; state: string }>> {
    const doc = await this.ask<{ nodes: Array<{ name: string; state: string }> }>("nodes");
    return doc.nodes;
  }

  /** Whether the controller has read the catalogue by now, good or bad. */
  async catalogueRead(): Promise<boolean> {
    const doc = await this.ask<StatusDoc>("status").catch(() => null);
    return doc !== null && (doc.nodes.length > 0 || doc.catalogue.problems.length > 0);
  }

  async close(): Promise<void> {
    await this.link?.close();
  }

  private async ask<T>(verb: string): Promise<T> {
    this.link ??= await linkTo(this.broker, "mesh up");
    return this.link.controller<T>(verb, {});
  }
}
