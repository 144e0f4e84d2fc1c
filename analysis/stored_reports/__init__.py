"""Reports as they are stored, made again when sessions or the seal change, and looks at a sealed study."""
