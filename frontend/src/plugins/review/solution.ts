/** What is judged: the picture, and beside it the same picture with a region, or the empty place for one. */
import { h } from "../../frame/dom";
import type { Media, Text } from "../../server/model";
import { eachOnce, textBlock, type Given } from "../stimulus";

export interface Solution {
  image: Media | null;
  mark: Media | null;
  text: Text | null;
}

/** Both places are there in every trial, so that the picture stands where it stands without a region. */
export function besides({ image, mark, text }: Solution, given: Given): HTMLElement {
  const { words } = given;
  if (text !== null && image === null) return textBlock(text, words);
  const picture = eachOnce(given.picture);
  const places = [place(image, words.review.picture, picture), place(mark, words.review.marked, picture)];
  return h("div", { class: "pictures beside" }, ...places);
}

function place(media: Media | null, caption: string, picture: Given["picture"]): HTMLElement {
  if (media === null) return h("div", { class: "place empty" });
  return h("figure", { class: "place" }, h("div", { class: "picture" }, picture(media)), h("figcaption", {}, caption));
}
